"""Values and the onion: messages, tools, requests, filters, one chat call and one tool call."""
