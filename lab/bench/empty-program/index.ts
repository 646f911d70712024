import * as command from '@pulumi/command';
import * as docker from '@pulumi/docker';
import * as pulumi from '@pulumi/pulumi';

const config = new pulumi.Config();
new command.Provider('command');
new docker.Provider('docker', {
  host: config.require('host'),
  sshOpts: config.requireObject<string[]>('sshOpts'),
});
