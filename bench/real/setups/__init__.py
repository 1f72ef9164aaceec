# SPDX-License-Identifier: MIT
"""All setups. A new one is an entry in the file of its server, or a file that is added here."""
from rig import setup

from . import apache, apis, express, haproxy, lighttpd, nginx, node, python, ruby, varnish

ALL = setup.check([*nginx.SETUPS, *haproxy.SETUPS, *apache.SETUPS, *varnish.SETUPS, *lighttpd.SETUPS, *python.SETUPS,
                   *ruby.SETUPS, *express.SETUPS, *node.SETUPS, *apis.SETUPS])
