import { keepCompiledCode } from './components/compile-cache.ts';

keepCompiledCode();

export default async function program(): Promise<object> {
  const { buildStack } = await import('./components/stack.ts');
  return buildStack(process.cwd());
}
