// Plain JavaScript: the pack's host would compile a TypeScript entry by rules of its own, and leaves what it imports
// to Node.
import { PolicyPack } from '@pulumi/policy';
import { policies } from './policies.ts';

new PolicyPack('slot', { policies: [...policies] });
