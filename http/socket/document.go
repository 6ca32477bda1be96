package socket

import _ "embed"

// AsyncAPI describes the socket (AsyncAPI 3.0).
//
//go:embed asyncapi.json
var AsyncAPI []byte
