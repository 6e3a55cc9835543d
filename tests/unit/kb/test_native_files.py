"""Files read by the compiled readers: the triples of pyoxigraph, and its errors."""

from __future__ import annotations

import gzip
import pickle
from pathlib import Path

import pyoxigraph as ox
import pytest

from spaseq.errors import KbError
from spaseq.kb import open_kb
from spaseq.kb.files import read_quads
from spaseq.kb.snapshot import open_source
from spaseq.rdf.event import nodes_of
from spaseq.rdf.graph import Graph, StoredGraph

EX = "http://example.org/"
NAME = ox.NamedNode(EX + "k")
HEAD = f"@prefix e: <{EX}> .\n"

SOUND = {
    "plain.nt": f"<{EX}a> <{EX}p> <{EX}b> .\n<{EX}a> <{EX}p> <{EX}b> .\n# a comment\n\n",
    "no-end.nt": f"<{EX}a> <{EX}p> 'x' .".replace("'", '"'),
    "literals.nt": "".join(
        f"<{EX}a> <{EX}p> {text} .\n"
        for text in (
            '"x"',
            '"x"^^<http://www.w3.org/2001/XMLSchema#string>',
            '"1"^^<http://www.w3.org/2001/XMLSchema#integer>',
            '"01.50"^^<http://www.w3.org/2001/XMLSchema#decimal>',
            '"x"@en-GB',
            '"x"@EN',
            r'"a\"b\\c\n\u00e9\U0001F600"',
            '"é😀"',
            "_:b",
            "_:b.c",
        )
    ),
    "odd.nt": f"  <{EX}a>\t<{EX}p><{EX}b>.# end\n<http://[::1]/%20> <urn:p> <urn:é> .\n" * 3,
    "lines.nt": f'<{EX}a> <{EX}p> <{EX}b> .\r\n<{EX}b> <{EX}p> <{EX}c> .\r<{EX}c> <{EX}p> "x" .',
    "graphs.nq": f"<{EX}a> <{EX}p> <{EX}b> <{EX}g> .\n<{EX}a> <{EX}p> <{EX}b> _:g .\n"
    f"<{EX}a> <{EX}q> _:g .\n",
    "document.ttl": HEAD
    + 'e:a a e:C ; e:p 1, 2.50, 1e3, true, \'x\'@en, """a\nb""", [ e:q ( 1 [] ) ] .\n'
    + "[] e:p [] . _:x e:p _:x, <#rel>, <other> .\n@base <http://other.org/> . <x> e:p <y> .\n",
    "strange.ttl": HEAD + r"e:a\~b e:p e:%41, 'é\u00e9', <urn:\u00e9> . e:c e:p e:d ." + "\n",
    "crlf.ttl": HEAD.replace("\n", "\r\n") + 'e:a e:p """x\r\ny""" .\r\ne:b e:p 1 .\r\n',
    "graphs.trig": HEAD
    + "e:g { e:a e:p 1 . e:b e:p 2 } GRAPH e:h { e:a e:p 1 } { e:c e:p _:g } _:g { e:d e:p 3 }\n",
    "many.ttl": HEAD
    + "".join(f"e:s{i} e:p {i}, 'x{i}'@en ; e:q [ e:r {i} ] .\n" for i in range(9000)),
    "triple-terms.nt": f"<{EX}a> <{EX}p> <<( _:x <{EX}p> <<( <{EX}a> <{EX}p> _:x )>> )>> .\n",
    "triple-terms.ttl": HEAD
    + 'e:a e:p <<( _:x e:p "\\"" )>> {| e:q _:x |} . << e:a a _:x ~ e:r >> e:p 1 .',
}

UNSOUND = {
    "dot.nt": f"<{EX}a> <{EX}p> <{EX}b> .\n<{EX}a> <{EX}p> <{EX}b>\n<{EX}a> <{EX}p> <{EX}c> .\n",
    "string.nt": f'<{EX}a> <{EX}p> "open .\n<{EX}a> <{EX}p> "x" .\n',
    "message.nt": f"<{EX}a> <{EX}p> <{EX}b> .\nMESSAGE\n",
    "iri.nt": f"<{EX}a> <{EX}p> <relative> .\n",
    "utf8.nt": f"<{EX}a> <{EX}p> <{EX}b> .\n".encode() + b'<urn:a> <urn:p> "\xff" .\n',
    "graph.nt": f"<{EX}a> <{EX}p> <{EX}b> <{EX}g> .\n",
    "prefix.ttl": HEAD + "e:a e:p 1 .\ne:a f:p 1 .\n",
    "open.ttl": HEAD + "e:a e:p 1 .\ne:a e:p \n",
    "string.ttl": HEAD + 'e:a e:p """x\n\ny .\n',
    "brace.trig": HEAD + "e:g { e:a e:p 1 .\n",
}


def written(folder: Path, name: str, text: str | bytes) -> Path:
    path = folder / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def canonical(graph: Graph) -> str:
    """The triples as text that does not depend on the labels of blank nodes."""
    found = ox.Dataset(ox.Quad(*fact) for fact in graph.facts)
    found.canonicalize(ox.CanonicalizationAlgorithm.UNSTABLE)
    return "\n".join(sorted(map(str, found)))


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("name", SOUND)
def test_triples_are_those_of_pyoxigraph(tmp_path, name, packed):
    path = written(tmp_path, name, SOUND[name])
    quads = read_quads(path)
    facts = dict.fromkeys((quad.subject, quad.predicate, quad.object) for quad in quads)
    if packed:
        data = path.read_bytes()
        path.unlink()
        path = tmp_path / (name + ".gz")
        path.write_bytes(gzip.compress(data))
        facts = dict.fromkeys(
            (quad.subject, quad.predicate, quad.object) for quad in read_quads(path)
        )
    graph = open_kb({EX + "k": path}).graph(NAME)
    assert isinstance(graph, StoredGraph)
    assert canonical(graph) == canonical(Graph(tuple(facts)))
    blanks = {node.value for fact in graph.facts for term in fact for node in nodes_of(term)}
    assert all(label.startswith("kb0.") for label in blanks)


def test_labels_of_blank_nodes_are_those_of_the_file(tmp_path):
    path = written(tmp_path, "b.nt", f"_:x <{EX}p> _:y.z .\n")
    ((subject, _, value),) = open_kb({EX + "k": path}).graph(NAME).facts
    assert (subject, value) == (ox.BlankNode("kb0.x"), ox.BlankNode("kb0.y.z"))


@pytest.mark.parametrize("name", UNSOUND)
def test_errors_are_those_of_pyoxigraph(tmp_path, name):
    path = written(tmp_path, name, UNSOUND[name])
    with pytest.raises(KbError) as expected:
        open_source(EX + "k", read_quads(path), "kb0")
    with pytest.raises(KbError) as found:
        open_kb({EX + "k": path})
    assert str(found.value) == str(expected.value)


def test_a_damaged_archive(tmp_path):
    path = tmp_path / "k.nt.gz"
    path.write_bytes(gzip.compress(SOUND["plain.nt"].encode())[:-9])
    with pytest.raises(KbError, match="cannot be read"):
        open_kb({EX + "k": path})


def test_a_large_statement_that_the_compiled_reader_leaves_to_pyoxigraph(tmp_path):
    values = ", ".join(f"'{i}'" for i in range(200_000))
    path = written(tmp_path, "k.ttl", HEAD + rf"e:a\~ e:p {values} . e:b e:p 1 .")
    assert len(open_kb({EX + "k": path})) == 200_001


def test_a_graph_survives_pickling(tmp_path):
    kb = open_kb({EX + "k": written(tmp_path, "k.ttl", SOUND["document.ttl"])})
    again = pickle.loads(pickle.dumps(kb))
    assert list(again.graph(NAME).facts) == list(kb.graph(NAME).facts)
