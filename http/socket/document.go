package socket

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"fmt"
	"net/url"
	"strings"
)

// AsyncAPI describes the socket (AsyncAPI 3.0), at the root of any server.
//
//go:embed asyncapi.json
var AsyncAPI []byte

// Document is AsyncAPI with the address of the socket: at is the prefix of its path, as in the
// server of OpenAPI. A URL becomes a server, a path becomes part of the address; empty changes
// nothing.
func Document(at string) ([]byte, error) {
	if at == "" {
		return AsyncAPI, nil
	}
	var doc map[string]any
	if err := json.Unmarshal(AsyncAPI, &doc); err != nil {
		return nil, fmt.Errorf("asyncapi: %w", err)
	}
	u, err := url.Parse(at)
	if err != nil {
		return nil, fmt.Errorf("asyncapi: %w", err)
	}
	if u.Host == "" {
		doc["channels"].(map[string]any)["twoFactor"].(map[string]any)["address"] = at + Path
	} else {
		server := map[string]any{"host": u.Host, "protocol": strings.Replace(u.Scheme, "http", "ws", 1)}
		if u.Path != "" {
			server["pathname"] = u.Path
		}
		doc["servers"] = map[string]any{"public": server}
	}
	var out bytes.Buffer
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	if err := enc.Encode(doc); err != nil {
		return nil, fmt.Errorf("asyncapi: %w", err)
	}
	return out.Bytes(), nil
}
