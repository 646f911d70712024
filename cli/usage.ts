/** A command line that says too little, too much, or nothing known. */
export class UsageError extends Error {}
