"""What an agent does with MCP servers, by the official SDK: calls tools and prints what they answer, a line each."""

from __future__ import annotations

import asyncio
import json
import sys

from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client


async def main(argv: list[str], calls: list[tuple[str, dict[str, str]]]) -> None:
    parameters = StdioServerParameters(command=argv[0], args=argv[1:])
    async with stdio_client(parameters) as (reading, writing), ClientSession(reading, writing) as session:
        await session.initialize()
        for name, arguments in calls:
            result = await session.call_tool(name, arguments)
            text = "".join(getattr(part, "text", "") for part in result.content)
            sys.stdout.write(json.dumps([name, text]) + "\n")


if __name__ == "__main__":
    asyncio.run(main(*json.loads(sys.argv[1])))
