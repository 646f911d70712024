/**
 * The part that the stand-ins for official plugins share: Pulumi's provider protocol, cut to what they need.
 * The stand-ins are test doubles. They are used only where an official plugin cannot be had.
 */
import { isDeepStrictEqual } from 'node:util';
import grpc from '@grpc/grpc-js';
import engineService from '@pulumi/pulumi/proto/engine_grpc_pb.js';
import engineMessages from '@pulumi/pulumi/proto/engine_pb.js';
import pluginMessages from '@pulumi/pulumi/proto/plugin_pb.js';
import providerService from '@pulumi/pulumi/proto/provider_grpc_pb.js';
import messages from '@pulumi/pulumi/proto/provider_pb.js';
import emptyMessage from 'google-protobuf/google/protobuf/empty_pb.js';
import structMessage from 'google-protobuf/google/protobuf/struct_pb.js';

export type Values = Record<string, unknown>;
/** Shows a line in the resource's row while the operation runs. */
export type Status = (line: string) => void;

export interface Resource {
  /** Inputs whose change replaces the resource. */
  replacedBy: readonly string[];
  /** Outputs that a create or an update determines, so that a preview of one shows them as unknown. */
  determines: readonly string[];
  /** Fills in defaults. */
  check?(inputs: Values): Values;
  create(inputs: Values, status: Status): Promise<{ id: string; outputs: Values }>;
  update(inputs: Values, state: Values, status: Status): Promise<Values>;
  delete(state: Values, status: Status): Promise<void>;
  /** What is there now, undefined when it is gone. Default: the state is believed. */
  read?(state: Values): Promise<Values | undefined>;
}

export interface Provider {
  name: string;
  version: string;
  configure?(configuration: Values): void;
  resources: Record<string, Resource>;
  functions: Record<string, (inputs: Values) => Promise<Values>>;
}

const unknownValue = '04da6b54-80e4-46f7-96ec-b56ff0331ba9';
const unlimited = { 'grpc.max_receive_message_length': -1, 'grpc.max_send_message_length': -1 };

/** Serves `provider` to the engine that started this process, until that engine is gone. */
export async function serve(provider: Provider): Promise<void> {
  const engineAddress = process.argv.slice(2).find((argument) => !argument.startsWith('-'));
  if (!engineAddress) throw new Error(`${process.argv[1]}: expected the address of the engine as argument`);
  const engine = new engineService.EngineClient(engineAddress, grpc.credentials.createInsecure(), unlimited);

  const statusOf = (urn: string): Status => {
    return (line) => {
      const request = new engineMessages.LogRequest();
      request.setSeverity(engineMessages.LogSeverity.INFO);
      request.setUrn(urn);
      request.setMessage(line);
      request.setEphemeral(true);
      engine.log(request, () => {});
    };
  };
  const resourceOf = (urn: string): Resource => {
    const type = urn.split('::')[2]?.split('$').at(-1) ?? '';
    const resource = provider.resources[type];
    if (!resource)
      throw new Error(`the stand-in for the plugin ${provider.name} does not know the resource ${type}`);
    return resource;
  };

  const server = new grpc.Server(unlimited);
  server.addService(providerService.ResourceProviderService as unknown as grpc.ServiceDefinition, {
    getPluginInfo: answering(async () => {
      const info = new pluginMessages.PluginInfo();
      info.setVersion(provider.version);
      return info;
    }),
    configure: answering(async (request: messages.ConfigureRequest) => {
      provider.configure?.(valuesOf(request.getArgs()));
      const response = new messages.ConfigureResponse();
      // The engine then hands over plain values, and marks again as secret what was secret in the inputs.
      response.setAcceptsecrets(false);
      response.setSupportspreview(true);
      return response;
    }),
    check: answering(async (request: messages.CheckRequest) => {
      const response = new messages.CheckResponse();
      const inputs = valuesOf(request.getNews());
      response.setInputs(structOf(resourceOf(request.getUrn()).check?.(inputs) ?? inputs));
      return response;
    }),
    diff: answering(async (request: messages.DiffRequest) => {
      const { replacedBy } = resourceOf(request.getUrn());
      return diffOf(valuesOf(request.getOldInputs()), valuesOf(request.getNews()), replacedBy);
    }),
    create: answering(async (request: messages.CreateRequest) => {
      const resource = resourceOf(request.getUrn());
      const inputs = valuesOf(request.getProperties());
      const response = new messages.CreateResponse();
      if (request.getPreview()) {
        response.setProperties(structOf({ ...inputs, ...unknowns(resource) }));
        return response;
      }
      const { id, outputs } = await resource.create(inputs, statusOf(request.getUrn()));
      response.setId(id);
      response.setProperties(structOf(outputs));
      return response;
    }),
    update: answering(async (request: messages.UpdateRequest) => {
      const resource = resourceOf(request.getUrn());
      const inputs = valuesOf(request.getNews());
      const response = new messages.UpdateResponse();
      const outputs = request.getPreview()
        ? { ...inputs, ...unknowns(resource) }
        : await resource.update(inputs, valuesOf(request.getOlds()), statusOf(request.getUrn()));
      response.setProperties(structOf(outputs));
      return response;
    }),
    delete: answering(async (request: messages.DeleteRequest) => {
      await resourceOf(request.getUrn()).delete(
        valuesOf(request.getProperties()),
        statusOf(request.getUrn()),
      );
      return new emptyMessage.Empty();
    }),
    read: answering(async (request: messages.ReadRequest) => {
      const resource = resourceOf(request.getUrn());
      const state = valuesOf(request.getProperties());
      const response = new messages.ReadResponse();
      const found = resource.read ? await resource.read(state) : state;
      if (!found) return response;
      response.setId(request.getId());
      response.setProperties(structOf(found));
      response.setInputs(request.getInputs());
      return response;
    }),
    invoke: answering(async (request: messages.InvokeRequest) => {
      const run = provider.functions[request.getTok()];
      if (!run) {
        throw new Error(`the stand-in for the plugin ${provider.name} does not know ${request.getTok()}`);
      }
      const response = new messages.InvokeResponse();
      response.setReturn(structOf(await run(valuesOf(request.getArgs()))));
      return response;
    }),
    cancel: answering(async () => new emptyMessage.Empty()),
  });

  const bind = new Promise<number>((resolve, reject) => {
    const credentials = grpc.ServerCredentials.createInsecure();
    server.bindAsync('127.0.0.1:0', credentials, (error, port) => (error ? reject(error) : resolve(port)));
  });
  console.log(String(await bind));
  endWithEngine();
}

/** A killed engine cannot end its plugins: without this they, and the ssh below them, would live on. */
function endWithEngine(): void {
  const engine = process.ppid;
  setInterval(() => {
    if (process.ppid !== engine) process.exit(1);
  }, 500).unref();
}

function answering<Request, Response>(
  answer: (request: Request) => Promise<Response>,
): grpc.handleUnaryCall<Request, Response> {
  return (call, callback) => {
    answer(call.request).then(
      (response) => callback(null, response),
      (error: Error) => callback({ code: grpc.status.UNKNOWN, details: error.message }),
    );
  };
}

function diffOf(before: Values, after: Values, replacedBy: readonly string[]): messages.DiffResponse {
  const { Kind } = messages.PropertyDiff;
  const response = new messages.DiffResponse();
  const changed = Object.keys({ ...before, ...after }).filter(
    (name) => !isDeepStrictEqual(contentOf(before[name]), contentOf(after[name])),
  );
  for (const name of changed) {
    const replaces = replacedBy.includes(name);
    const change = new messages.PropertyDiff();
    change.setInputdiff(true);
    if (!(name in before)) change.setKind(replaces ? Kind.ADD_REPLACE : Kind.ADD);
    else if (!(name in after)) change.setKind(replaces ? Kind.DELETE_REPLACE : Kind.DELETE);
    else change.setKind(replaces ? Kind.UPDATE_REPLACE : Kind.UPDATE);
    response.getDetaileddiffMap().set(name, change);
  }
  const { DIFF_NONE, DIFF_SOME } = messages.DiffResponse.DiffChanges;
  response.setChanges(changed.length > 0 ? DIFF_SOME : DIFF_NONE);
  response.setDiffsList(changed);
  response.setReplacesList(changed.filter((name) => replacedBy.includes(name)));
  response.setHasdetaileddiff(true);
  return response;
}

/** An asset or archive is the same when its content is, wherever it lies. */
function contentOf(value: unknown): unknown {
  if (typeof value === 'object' && value !== null && 'hash' in value) return value.hash;
  return value;
}

function unknowns(resource: Resource): Values {
  return Object.fromEntries(resource.determines.map((name) => [name, unknownValue]));
}

function valuesOf(struct: structMessage.Struct | undefined): Values {
  return struct ? struct.toJavaScript() : {};
}

function structOf(values: Values): structMessage.Struct {
  const known = Object.entries(values).filter(([, value]) => value !== undefined);
  return structMessage.Struct.fromJavaScript(Object.fromEntries(known) as never);
}
