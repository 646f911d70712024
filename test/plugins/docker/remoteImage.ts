import type { Resource, Values } from '../provider.ts';
import type { DockerApi, Image } from './dockerApi.ts';

interface Inputs {
  name: string;
  keepLocally?: boolean;
  forceRemove?: boolean;
  platform?: string;
}

/** Every operation connects first, so that none succeeds at a host that is gone: that is how the official plugin does it. */
export function remoteImage(connect: () => Promise<DockerApi>): Resource {
  return {
    replacedBy: ['name', 'platform', 'pullTriggers', 'triggers', 'build'],
    determines: ['imageId', 'repoDigest'],
    check(inputs) {
      if (inputs.build) throw new Error('the stand-in pulls images, it does not build them');
      return inputs;
    },
    async create(inputs) {
      const outputs = await present(await connect(), inputs as Values & Inputs);
      return { id: `${outputs.imageId}${inputs.name}`, outputs };
    },
    async update(inputs) {
      return present(await connect(), inputs as Values & Inputs);
    },
    async delete(state) {
      const { name, keepLocally, forceRemove = false } = state as Values & Inputs;
      const api = await connect();
      if (!keepLocally && (await api.find(name))) await api.remove(name, forceRemove);
    },
    async read(state) {
      const image = await (await connect()).find((state as Values & Inputs).name);
      return image && { ...state, ...outputsOf(image, (state as Values & Inputs).name) };
    },
  };
}

async function present(api: DockerApi, inputs: Values & Inputs): Promise<Values> {
  const { name, platform = '' } = inputs;
  let image = await api.find(name);
  if (!image) {
    try {
      await api.pull(name, platform);
    } catch (error) {
      throw new Error(
        `Unable to read Docker image into resource: unable to pull image ${name}: ` +
          `error pulling image ${name}: ${(error as Error).message}`,
      );
    }
    image = await api.find(name);
  }
  if (!image) {
    throw new Error(`Unable to read Docker image into resource: unable to find or pull image ${name}`);
  }
  return { ...inputs, ...outputsOf(image, name) };
}

function outputsOf(image: Image, name: string): { imageId: string; repoDigest: string } {
  const digests = image.RepoDigests ?? [];
  const repository = String(name.split(':')[0]);
  // With several, the official plugin takes the first that begins like the name, which need not be the one pinned.
  const repoDigest = digests.find((digest) => digests.length === 1 || digest.startsWith(repository));
  return { imageId: image.Id, repoDigest: repoDigest ?? digests[0] ?? '' };
}
