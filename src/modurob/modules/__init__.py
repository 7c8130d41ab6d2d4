"""Modules as datasheets: what a module is made of, the catalog, and users' own files."""

from modurob.modules.catalog import Catalog, catalog
from modurob.modules.datasheet import Body, Joint, Mesh, Port, Shape
from modurob.modules.module_type import ModuleType

__all__ = ["Body", "Catalog", "Joint", "Mesh", "ModuleType", "Port", "Shape", "catalog"]
