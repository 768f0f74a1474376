from bench.server_process import _free_ports


def test_free_ports_are_distinct() -> None:
    assert len(set(_free_ports(8))) == 8
