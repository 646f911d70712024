"""`vllm serve …`: the image's entrypoint."""

import sys

from vllm import __version__
from vllm.entrypoints.openai.api_server import run_server
from vllm.entrypoints.openai.cli_args import make_arg_parser, validate_parsed_serve_args
from vllm.utils.argparse_utils import FlexibleArgumentParser


def main():
    parser = FlexibleArgumentParser(prog="vllm", description="vLLM CLI (lab double)")
    parser.add_argument("-v", "--version", action="version", version=__version__)
    commands = parser.add_subparsers(dest="subparser", required=True)
    make_arg_parser(commands.add_parser("serve", usage="vllm serve [model_tag] [options]"))
    args = parser.parse_args()
    validate_parsed_serve_args(args)
    run_server(args)


if __name__ == "__main__":
    sys.exit(main())
