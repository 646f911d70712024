import { planned, type RuleCases } from '../rule-cases.ts';

const release = planned('glm-w4a16');
const hex = 'a'.repeat(64);
const named = (what: string, image: string) => ({ what, release: { ...release, image } });

export const cases: RuleCases = {
  'image-by-digest': {
    fires: [
      named('a tag alone', 'docker.io/tcclaviger/vllm:v0.27'),
      named('neither tag nor digest', 'docker.io/tcclaviger/vllm'),
      named('63 digits', `docker.io/tcclaviger/vllm@sha256:${hex.slice(1)}`),
      named('65 digits', `docker.io/tcclaviger/vllm@sha256:${hex}a`),
      named('upper-case digits', `docker.io/tcclaviger/vllm@sha256:${hex.toUpperCase()}`),
      named('a trailing blank', `docker.io/tcclaviger/vllm@sha256:${hex} `),
      named('no algorithm', `docker.io/tcclaviger/vllm@${hex}`),
      named('another algorithm', `docker.io/tcclaviger/vllm@sha512:${hex}`),
      named('an upper-case repository', `docker.io/Tcclaviger/vllm@sha256:${hex}`),
      named('no registry', `vllm/vllm-openai@sha256:${hex}`),
      named('nothing', ''),
    ],
    silent: [
      { what: 'the shape as it is', release },
      named('a local image', `localhost/x@sha256:${hex}`),
      named('a registry with a port', `host:5000/x/y@sha256:${hex}`),
    ],
  },
  'image-without-tag': {
    fires: [
      named('a tag beside the digest', `docker.io/tcclaviger/vllm:v0.27@sha256:${hex}`),
      named('a tag beside a registry with a port', `host:5000/vllm:v0.27@sha256:${hex}`),
      named('a tag alone', 'docker.io/tcclaviger/vllm:latest'),
    ],
    silent: [
      { what: 'the shape as it is', release },
      named('a registry with a port', `host:5000/x/y@sha256:${hex}`),
    ],
  },
};
