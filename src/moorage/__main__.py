"""`python -m moorage` is the command line: that of the client if only moorage-client is there."""

import sys
from importlib.util import find_spec

if find_spec("moorage.cli") is not None:
    from moorage.cli.main import main

    main()
else:
    from moorage.client.main import main as client_main

    sys.exit(client_main(sys.argv[1:], (sys.executable, "-m", "moorage")))
