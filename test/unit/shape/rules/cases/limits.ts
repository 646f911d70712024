import { planned, type RuleCases, withUnit } from '../rule-cases.ts';

const glm = planned('glm-w4a16');
const changed = (present: string, instead: string) => withUnit(glm, present, instead);
const locked = (line: string) => changed('LimitMEMLOCK=infinity', line);
const small = planned('glm-w4a16', { shape: { limits: { memlock: { bytes: 64 * 2 ** 20 } } } });

export const cases: RuleCases = {
  'memlock-with-unit': {
    fires: [
      { what: 'a bare number', release: locked('LimitMEMLOCK=8192'), found: 'LimitMEMLOCK=8192' },
      { what: '-1', release: locked('LimitMEMLOCK=-1') },
      { what: 'a unit that systemd does not know', release: locked('LimitMEMLOCK=64MiB') },
      { what: 'nothing', release: locked('') },
      { what: 'another limit than the engine is checked for', release: locked('LimitMEMLOCK=64M') },
      { what: 'two limits', release: changed('--ulimit=host', '--ulimit=host --ulimit=memlock=-1:-1') },
    ],
    silent: [
      { what: 'infinity', release: glm },
      { what: 'a size', release: small },
      {
        what: 'a size that is no round number',
        release: planned('glm-w4a16', { shape: { limits: { memlock: { bytes: 8_388_609 } } } }),
      },
    ],
  },
  'memlock-for-offload': {
    fires: [
      { what: 'a size', release: small, found: 'LimitMEMLOCK=64M' },
      { what: "systemd's default", release: locked('') },
      { what: 'a limit that does not reach the container', release: changed('    --ulimit=host \\\n', '') },
    ],
    silent: [
      { what: 'infinity', release: glm },
      {
        what: 'all experts resident',
        release: planned('glm-w4a16', {
          shape: {
            engine: { expertOffload: false, expertPreciseMemory: false },
            limits: { memlock: { bytes: 64 * 2 ** 20 } },
          },
        }),
      },
      { what: 'another engine', release: planned('r9v-q8_0') },
    ],
  },
  'pids-explicit': {
    fires: [
      { what: 'none', release: changed('    --pids-limit=0 \\\n', '') },
      { what: '-1', release: changed('--pids-limit=0', '--pids-limit=-1'), found: '--pids-limit=-1' },
      { what: 'a limit of the unit', release: changed('TasksMax=infinity', 'TasksMax=4096') },
      { what: "systemd's default", release: changed('TasksMax=infinity', '') },
    ],
    silent: [
      { what: 'no limit, said', release: glm },
      { what: 'a number', release: planned('glm-w4a16', { shape: { limits: { pids: 4096 } } }) },
    ],
  },
  'open-files-explicit': {
    fires: [
      { what: 'none', release: changed('LimitNOFILE=1048576', '') },
      { what: 'another number', release: changed('LimitNOFILE=1048576', 'LimitNOFILE=65536') },
      { what: 'infinity', release: changed('LimitNOFILE=1048576', 'LimitNOFILE=infinity') },
    ],
    silent: [{ what: 'the number that podman gives', release: glm }],
  },
};
