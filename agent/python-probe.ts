import * as z from 'zod';
import { jsonOrUndefined } from '../shape/json.ts';

/** What is asked of one file of a Python package. */
export interface ProbedFile {
  readonly target: string;
  /** Whether its module is imported as well: that runs its code, and that of all that it imports. */
  readonly imports: boolean;
  /** Python expressions that are asked of the imported module. */
  readonly markers: readonly string[];
}

export interface ProbeRequest {
  /** The engine's program and its words, by which its Python is found; none: those of the container's first process. */
  readonly words: readonly string[];
  readonly files: readonly ProbedFile[];
  /** The probe ends itself after so many seconds. */
  readonly limitSeconds: number;
}

const pythonSchema = z.object({ executable: z.string(), version: z.string(), path: z.array(z.string()) });

const fileSchema = z.object({
  target: z.string(),
  kind: z.enum(['file', 'link', 'folder', 'other', 'absent']),
  realPath: z.string(),
  sha256: z.string().nullish(),
  /** By which Python imports the target; absent: by none. */
  module: z.string().nullish(),
  /** Where the module of the target's name comes from instead. */
  shadowedBy: z.string().nullish(),
  /** Whether the code that Python would run is that of the file as it is. */
  isCompiledFrom: z.boolean().nullish(),
  codeError: z.string().nullish(),
  cache: z.object({ path: z.string(), kind: z.string() }).nullish(),
});

const importSchema = z.object({
  target: z.string(),
  error: z.string().nullish(),
  /** Where the imported module says that it is from. */
  file: z.string().nullish(),
  /** For each: `true`, or why it does not hold. */
  markers: z.array(z.union([z.literal(true), z.string()])).nullish(),
});

export type ProbedPython = z.infer<typeof pythonSchema>;
export type ProbeFinding = z.infer<typeof fileSchema> & { readonly imported?: z.infer<typeof importSchema> };

export interface ProbeAnswer {
  readonly python: ProbedPython;
  readonly files: readonly ProbeFinding[];
}

/** Words after `python3` that run the probe. */
export function probeWords(request: ProbeRequest): readonly string[] {
  const asked = Buffer.from(JSON.stringify(request)).toString('base64');
  return ['-I', '-B', '-c', 'import sys; exec(sys.argv[1])', probe, asked];
}

/** A line for each thing that was found: what ends in the middle has told what it knew. Undefined: it told nothing. */
export function probeAnswerOf(stdout: string): ProbeAnswer | undefined {
  const lineSchema = z.union([
    z.object({ python: pythonSchema }),
    z.object({ found: fileSchema }),
    z.object({ imported: importSchema }),
  ]);
  const lines = stdout.split('\n').flatMap((line) => {
    const read = lineSchema.safeParse(jsonOrUndefined(line));
    return read.success ? [read.data] : [];
  });
  const python = lines.flatMap((line) => ('python' in line ? [line.python] : []))[0];
  if (python === undefined) return undefined;
  const imported = lines.flatMap((line) => ('imported' in line ? [line.imported] : []));
  const files = lines
    .flatMap((line) => ('found' in line ? [line.found] : []))
    .map((found): ProbeFinding => {
      const own = imported.find(({ target }) => target === found.target);
      return own === undefined ? found : { ...found, imported: own };
    });
  return { python, files };
}

/**
 * Finds the Python that the engine's program starts, becomes it, and asks its import machinery for each file: by
 * which module it is imported, and of which byte code. For that nothing is imported: packages are found and their
 * code is read, not run, so that it costs no memory and touches no GPU. Nothing is written (`-B`).
 */
const probe = `
import base64, hashlib, importlib.util, json, mmap, os, re, shutil, signal, stat, sys, time, types

request = json.loads(base64.b64decode(sys.argv[2]))

def is_python(path):
    return re.fullmatch(r"python(\\d+(\\.\\d+)*)?t?", os.path.basename(path)) is not None

def start_of(words):
    """Python with its options as the program starts it, and the script that it runs."""
    for position, word in enumerate(words):
        path = shutil.which(word)
        if path is None:
            continue
        if is_python(path):
            start, after = [path], words[position + 1:]
            while after and re.fullmatch(r"-(?:[bBdEIOPqRsSuvx]+|[XW].*)", after[0]):
                count = 2 if after[0] in ("-X", "-W") else 1
                start, after = start + after[:count], after[count:]
            script = after[0] if after and os.path.isfile(after[0]) else ""
            return start, script
        with open(path, "rb") as file:
            line = file.readline(512).decode(errors="replace")
        if not line.startswith("#!"):
            continue
        start = line[2:].split()
        if start and os.path.basename(start[0]) == "env":
            start.pop(0)
            while start and (start[0].startswith("-") or "=" in start[0]):
                start.pop(0)
            start[:1] = [shutil.which(part) or part for part in start[:1]]
        if start and is_python(start[0]):
            return start, path
    return None

if len(sys.argv) == 3:
    words = request["words"]
    if not words:
        with open("/proc/1/cmdline", encoding="utf-8", errors="surrogateescape") as file:
            words = file.read().split("\\0")
    start, script = start_of(words) or ([shutil.which("python3") or sys.executable], "")
    own = ["-B", "-c", "import sys; exec(sys.argv[1])", sys.argv[1], sys.argv[2], script]
    os.execv(start[0], start + own)

script = sys.argv[3]
sys.argv = [script]
if script and sys.path and sys.path[0] == "":
    sys.path[0] = os.path.dirname(os.path.realpath(script))
end = time.monotonic() + request["limitSeconds"]
signal.alarm(request["limitSeconds"])
answer = os.fdopen(os.dup(1), "w")
os.dup2(2, 1)

def tell(**line):
    print(json.dumps(line), file=answer, flush=True)

def spec_of(name):
    """As an import would find it, without running the packages above it."""
    path, parts, stand_ins = None, name.split("."), []
    try:
        for count in range(1, len(parts) + 1):
            whole, spec = ".".join(parts[:count]), None
            for finder in list(sys.meta_path):
                spec = finder.find_spec(whole, path, None)
                if spec is not None:
                    break
            if spec is None:
                return None
            path = spec.submodule_search_locations
            if count < len(parts):
                if path is None:
                    return None
                if whole not in sys.modules:
                    # A folder without __init__.py asks the package above it where that lies.
                    sys.modules[whole] = stand_in = types.ModuleType(whole)
                    stand_in.__path__ = path
                    stand_ins.append(whole)
        return spec
    finally:
        for whole in stand_ins:
            del sys.modules[whole]

def module_names(target):
    """All that the file could be called: below its topmost package, and below each folder of the path of any Python."""
    above = os.path.dirname(target)
    while os.path.exists(os.path.join(above, "__init__.py")) and above != "/":
        above = os.path.dirname(above)
    roots = [above] if above != os.path.dirname(target) else []
    roots += re.findall(r"^.*?/(?:site|dist)-packages(?=/)", target)
    roots += [os.path.realpath(entry or os.getcwd()) for entry in sys.path]
    for root in roots:
        if not target.startswith(root.rstrip("/") + "/") or not target.endswith(".py"):
            continue
        parts = target[len(root.rstrip("/")) + 1:-len(".py")].split("/")
        if parts[-1] == "__init__":
            parts.pop()
        if parts and all(part.isidentifier() for part in parts):
            yield ".".join(parts)

def kind_of(path):
    try:
        mode = os.lstat(path).st_mode
    except OSError:
        return "absent"
    for name, test in (("link", stat.S_ISLNK), ("folder", stat.S_ISDIR), ("file", stat.S_ISREG)):
        if test(mode):
            return name
    return "other"

def cache_of(spec):
    """The byte code that lies beside the source, and how Python trusts it."""
    try:
        with open(spec.cached, "rb") as file:
            head = file.read(16)
    except (OSError, TypeError):
        return None
    if head[:4] != importlib.util.MAGIC_NUMBER:
        return None
    flags = int.from_bytes(head[4:8], "little")
    kind = "timestamp" if flags == 0 else "checked-hash" if flags & 2 else "unchecked-hash"
    return {"path": spec.cached, "kind": kind}

def look_at(target):
    found = {"target": target, "kind": kind_of(target), "realPath": os.path.realpath(target)}
    if found["kind"] != "file":
        return found
    with open(target, "rb") as file:
        source = file.read()
    found["sha256"] = hashlib.sha256(source).hexdigest()
    for name in dict.fromkeys(module_names(target)):
        spec = spec_of(name)
        if spec is None or not spec.origin:
            continue
        if os.path.realpath(spec.origin) != target:
            found.setdefault("shadowedBy", spec.origin)
            continue
        found.update(module=name, shadowedBy=None, cache=cache_of(spec))
        try:
            fresh = spec.loader.source_to_code(source, spec.origin)
            found["isCompiledFrom"] = spec.loader.get_code(name) == fresh
        except Exception as error:
            found["codeError"] = f"{type(error).__name__}: {error}"
        break
    return found

tell(python={"executable": sys.executable, "version": sys.version.split()[0], "path": sys.path})
modules = {}
for item in request["files"]:
    found = look_at(item["target"])
    modules[item["target"]] = found.get("module")
    tell(found=found)

def imported(name, markers):
    try:
        module = importlib.import_module(name)
    except BaseException as error:
        return {"error": f"{type(error).__name__}: {error}"}
    told = {"file": os.path.realpath(getattr(module, "__file__", None) or "")}
    if markers:
        told["markers"] = [asked(module, marker) for marker in markers]
    return told

def asked(module, marker):
    try:
        # In lines of its own: it may end with a comment.
        value = eval(f"(\\n{marker}\\n)", dict(vars(module)))
        return True if value else f"it is {value!r}"
    except BaseException as error:
        return f"{type(error).__name__}: {error}"

wanted = [item for item in request["files"] if item["imports"] and modules[item["target"]] is not None]
under_way = mmap.mmap(-1, 4)

def import_all(items):
    for position, item in enumerate(items):
        under_way[:4] = position.to_bytes(4, "little")
        tell(imported={"target": item["target"], **imported(modules[item["target"]], item["markers"])})
    under_way[:4] = len(items).to_bytes(4, "little")

while wanted:
    # One that ends or holds up Python must not keep the next ones from being tried.
    seconds = (end - time.monotonic()) / (1 if len(wanted) == 1 else 2)
    child = os.fork()
    if child == 0:
        signal.alarm(max(1, int(seconds)))
        try:
            import_all(wanted)
        finally:
            os._exit(0)
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    position = int.from_bytes(under_way[:4], "little")
    if position < len(wanted):
        how = "it did not end in its time" if code == -signal.SIGALRM else f"exit code {code}"
        error = f"Python ended during the import: {how}"
        tell(imported={"target": wanted[position]["target"], "error": error})
    wanted = wanted[position + 1:]
answer.flush()
os._exit(0)
`;
