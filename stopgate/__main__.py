"""
The hook as a file, for `python -I -S`, which starts faster than a console script. A file that is run is compiled anew each
time, so this one is short.
"""

import sys

_PLACE = "/turngate/stopgate/__main__.py"


def _main() -> None:
    if __file__.endswith(_PLACE):
        # `python -S` knows no installed packages; ours are those that this file lies among.
        sys.path.append(__file__.removesuffix(_PLACE))
    else:
        # The sources of an editable install: only its finder knows where they lead.
        import site

        site.main()
    try:
        from turngate.stopgate.hook import main
    except ImportError as error:
        sys.stderr.write(f"turngate: not installed beside this file: {error}\n")
        return
    main()


if __name__ == "__main__":
    _main()
