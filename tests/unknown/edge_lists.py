"""Edge lists and node tables."""

from __future__ import annotations

import gzip

from nmsolve.model.formats import load_graph
from nmsolve.model.formats.node_table import read_nodes
from unknown import Row

EDGES, NODES = "model.formats.edge_list", "model.formats.node_table"

ROWS = [
    Row(EDGES, load_graph, "delay.csv", "source,target,delay\n0,1,2\n", "'delay'"),
    Row(EDGES, load_graph, "names.csv", "who,whom\n0,1\n", "'who', 'whom'"),
    Row(EDGES, load_graph, "index.csv", ",source,target\n0,0,1\n", "without a name"),
    Row(EDGES, load_graph, "both.csv", "source,target,weight,rate\n0,1,2,3\n", "'rate'"),
    Row(EDGES, load_graph, "unit.csv", "source,target,weight (nA)\n0,1,2\n", "'nA'"),
    Row(EDGES, load_graph, "kind.csv", "source,target,type\n0,1,exc\n", "'type'"),
    Row(EDGES, load_graph, "type.csv", "source,target,type\n0,1,Directed\n1,2,Mutual\n", "Mutual"),
    Row(EDGES, load_graph, "nx.edges", "0 1 {'weight': 2, 'colour': 'red'}\n", "'colour'"),
    Row(EDGES, load_graph, "four.txt", "0 1 2 3\n", "4 columns"),
    Row(EDGES, load_graph, "packed.csv.gz", gzip.compress(b"source,target,label\n0,1,x\n"), "'label'"),
    Row(EDGES, load_graph, "e.csv", "source,target,delay,label\n0,1,2,x\n", "'delay', 'label'"),
    Row(EDGES, load_graph, "e.csv", "source,target,Type\n0,1,\n1,2,Undirected\n", "type ''"),
    Row(NODES, read_nodes, "n.csv", "node,rate [Hz]\na,1\n", "'Hz'"),
    Row(NODES, read_nodes, "n.csv", "node,size (MB)\na,1\n", "'MB'"),
    Row(NODES, read_nodes, "n.csv", "node,sizes.table (kB)\na,1\n", "'kB'"),
    Row(NODES, lambda path: read_nodes(path, multicast=True), "n.csv", "node,multicast\na,no\nb,yes\n", "1 of 2"),
    Row(NODES, read_nodes, "n.csv", "node,size,colour\na,1,red\n", "'colour'"),
    Row(NODES, read_nodes, "i.csv", "label,size\na,1\n", "'label'"),
    Row(NODES, read_nodes, "m.csv", "node,multicast\na,perhaps\n", "perhaps"),
]  # fmt: skip
