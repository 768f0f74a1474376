from plugins.protocols.download import download


def test_a_browser_saves_a_document_and_runs_nothing_of_it() -> None:
    answer = download('"Über\r\nuns".html', b"<script>")
    assert answer.body == b"<script>"
    policy = answer.headers["content-security-policy"]
    assert {part.strip() for part in policy.split(";")} == {"sandbox", "default-src 'none'"}
    expected = {
        "content-type": "application/octet-stream",
        "content-disposition": "attachment; filename*=UTF-8''%22%C3%9Cber%0D%0Auns%22.html",
        "x-content-type-options": "nosniff",
        "cache-control": "no-store",
    }
    assert expected.items() <= dict(answer.headers).items()
