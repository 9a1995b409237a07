"""Gets a page as a program does: URL, TOKEN (may be empty), FILE for the answer. Prints the status.

With the word `follow` behind them, it writes what comes until the other side ends it; with `status` it reads no more
than that.
"""
import http.client, sys, urllib.parse

url = urllib.parse.urlsplit(sys.argv[1])
connection = http.client.HTTPConnection(url.hostname, url.port, timeout=600 if sys.argv[4:] else 20)
headers = {"Authorization": "Bearer " + sys.argv[2]} if sys.argv[2] else {}
connection.request("GET", (url.path or "/") + ("?" + url.query if url.query else ""), headers=headers)
answer = connection.getresponse()
with open(sys.argv[3], "wb") as file:
    while sys.argv[4:] != ["status"] and (piece := answer.read1(65536)):
        file.write(piece)
        file.flush()
print(answer.status)
