/** One part of the tool chain that was found, fetched or made. */
export interface Part {
  part: 'node' | 'pulumi' | 'pulumi-language-nodejs' | 'pulumi-resource-command' | 'pulumi-resource-docker';
  version: string;
  /** Absolute path of what was taken. */
  took: string;
  from: 'machine' | 'official download' | 'built from source' | 'npm package' | 'stand-in';
}

/** Receives one line for people whenever something takes time. */
export type Progress = (line: string) => void;
