import { type ChildProcess, spawn } from 'node:child_process';
import { createRequire } from 'node:module';
import { fileURLToPath } from 'node:url';
import grpc from '@grpc/grpc-js';
import { AnalyzerClient } from '@pulumi/pulumi/proto/analyzer_grpc_pb.js';
import analyzer from '@pulumi/pulumi/proto/analyzer_pb.js';
import empty from 'google-protobuf/google/protobuf/empty_pb.js';
import struct from 'google-protobuf/google/protobuf/struct_pb.js';

export interface Diagnostic {
  readonly policy: string;
  readonly level: 'advisory' | 'mandatory';
  readonly message: string;
}

/** The policy pack as Pulumi's engine meets it: a process that answers over gRPC. */
export interface Analyzer {
  policyNames(): Promise<readonly string[]>;
  /** What the pack says of a resource with these inputs. */
  analyze(type: string, inputs: object): Promise<readonly Diagnostic[]>;
  stop(): void;
}

const program = createRequire(import.meta.url).resolve('@pulumi/pulumi/cmd/run-policy-pack');
const pack = fileURLToPath(new URL('../../../policy', import.meta.url));

export async function startAnalyzer(): Promise<Analyzer> {
  // The engine's address is asked for and not used.
  const child = spawn(process.execPath, [program, '127.0.0.1:0', '.'], { cwd: pack });
  const address = `127.0.0.1:${await portOf(child)}`;
  const client = new AnalyzerClient(address, grpc.credentials.createInsecure());
  return {
    policyNames: () =>
      answer<InstanceType<typeof analyzer.AnalyzerInfo>>((done) =>
        client.getAnalyzerInfo(new empty.Empty(), done),
      ).then((info) => info.getPoliciesList().map((policy) => policy.getName())),
    async analyze(type, inputs) {
      const request = new analyzer.AnalyzeRequest();
      request.setType(type);
      request.setName('resource');
      request.setUrn(`urn:pulumi:stack::slot::${type}::resource`);
      request.setProperties(struct.Struct.fromJavaScript(JSON.parse(JSON.stringify(inputs))));
      request.setOptions(new analyzer.AnalyzerResourceOptions());
      const response = await answer<InstanceType<typeof analyzer.AnalyzeResponse>>((done) =>
        client.analyze(request, done),
      );
      return response.getDiagnosticsList().map((diagnostic) => ({
        policy: diagnostic.getPolicyname(),
        level:
          diagnostic.getEnforcementlevel() === analyzer.EnforcementLevel.MANDATORY ? 'mandatory' : 'advisory',
        message: diagnostic.getMessage(),
      }));
    },
    stop() {
      client.close();
      child.kill();
    },
  };
}

/** The pack prints its port as the first line. */
function portOf(child: ChildProcess): Promise<string> {
  return new Promise((resolve, reject) => {
    let said = '';
    child.stderr?.on('data', (chunk) => (said += chunk));
    child.stdout?.on('data', (chunk) => {
      said += chunk;
      const [port] = /^\d+(?=\n)/.exec(said) ?? [];
      if (port !== undefined) resolve(port);
    });
    child.on('exit', () => reject(new Error(`the pack did not start: ${said}`)));
  });
}

function answer<T>(call: (done: (error: Error | null, response: T) => void) => unknown): Promise<T> {
  return new Promise((resolve, reject) => {
    call((error, response) => (error === null ? resolve(response) : reject(error)));
  });
}
