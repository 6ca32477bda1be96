package persistence

import (
	"encoding/json"
	"strings"
)

// anyJSON is JSON that only a client reads; nil for a column that is empty.
func anyJSON(text string) json.RawMessage {
	if text == "" {
		return nil
	}
	return json.RawMessage(text)
}

// likeText writes a text so that LIKE takes it to the letter.
var likeText = strings.NewReplacer("!", "!!", "%", "!%", "_", "!_")
