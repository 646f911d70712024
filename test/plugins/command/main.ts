/** Test double of the official plugin `command`: the resources and the behaviour that the project relies on. */
import project from '../../../package.json' with { type: 'json' };
import { serve } from '../provider.ts';
import { copyToRemote } from './copyToRemote.ts';
import { localCommand, localRun } from './localCommand.ts';
import { remoteCommand } from './remoteCommand.ts';

await serve({
  name: 'command',
  version: project.dependencies['@pulumi/command'],
  resources: {
    'command:remote:Command': remoteCommand,
    'command:remote:CopyToRemote': copyToRemote,
    'command:local:Command': localCommand,
  },
  functions: { 'command:local:run': localRun },
});
