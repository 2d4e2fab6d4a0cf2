"""Calls a server with the `mcp` package for Python: both of its clients, over pipes and over HTTP.

Arguments: the program, the checkout, the URL, and a file of the checkout with its content.
"""

import asyncio
import json
import sys

from mcp import Client, ClientSession, StdioServerParameters, stdio_client
from mcp.client.streamable_http import streamable_http_client

PROGRAM, CHECKOUT, URL, PATH, CONTENT = sys.argv[1:]
PIPES = StdioServerParameters(command=PROGRAM, args=["-C", CHECKOUT, "mcp"])


async def check(way, client):
    tools = await client.list_tools()
    names = [tool.name for tool in tools.tools]
    assert "ocx_read" in names and len(names) == len(set(names)), names
    read = await client.call_tool("ocx_read", {"path": PATH})
    answer = json.loads(read.content[0].text)
    assert answer == read.structured_content and not read.is_error, read
    assert answer["ok"] and answer["result"]["text"] == CONTENT, answer
    refused = await client.call_tool("ocx_read", {"path": PATH, "from": 99})
    answer = json.loads(refused.content[0].text)
    assert refused.is_error and answer == refused.structured_content and not answer["ok"], refused
    print(f"{way}: {len(names)} tools, a call and a refusal")


async def session(way, streams, version):
    async with streams as (read, write, *_), ClientSession(read, write) as client:
        found = await client.initialize()
        assert found.protocol_version == version, found
        await check(f"ClientSession over {way} ({version})", client)


async def main():
    for way, server in (("pipes", PIPES), ("HTTP", URL)):
        async with Client(server) as client:
            assert client.protocol_version == "2026-07-28", client.protocol_version
            await check(f"Client over {way} (2026-07-28)", client)
    await session("pipes", stdio_client(PIPES), "2025-11-25")
    await session("HTTP", streamable_http_client(URL), "2025-11-25")


asyncio.run(main())
