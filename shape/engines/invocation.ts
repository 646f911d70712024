/** What surrounds an engine in its container, of whatever kind it is. */
export interface EnginePlace {
  readonly port: number;
  /** Path in the container of the payload, or of the file in it that the engine is pointed at. */
  readonly payload: string;
  /** Paths in the container of the folders that it may write, by name. */
  readonly state: Readonly<Record<string, string>>;
  /** Paths in the container at which something of the host is mounted. */
  readonly mounted: readonly string[];
  /** Names to be served besides the shape's own. */
  readonly publicNames: readonly string[];
}

/** What an engine's configuration asks for and its place does not give. */
export interface EngineFault {
  /** Path below the engine's configuration. */
  readonly key: string;
  readonly value: string | undefined;
  readonly limit: string;
  readonly remedy: string;
}

/** How an engine is started and talked to: all in which the kinds differ. */
export interface EngineInvocation {
  /** What the image must begin with by itself; undefined: nothing is known. */
  readonly entrypoint: readonly string[] | undefined;
  /** After the image, in order. */
  readonly arguments: readonly string[];
  /** Variables whose values are secrets, with their versions. */
  readonly secrets: Readonly<Record<string, { readonly version: string }>>;
  /** First the one that responses carry. */
  readonly servedNames: readonly string[];
  /** Answers 200 when the engine is ready; until then it refuses the connection or answers 503. */
  readonly healthPath: string;
  /** Whether requests with tools are answered. */
  readonly tools: boolean;
  /** The field of an answer that holds the thinking; undefined: none is told apart. */
  readonly reasoningField: 'reasoning' | 'reasoning_content' | undefined;
  readonly faults: readonly EngineFault[];
}
