package record

import (
	"encoding/json"
	"strings"
)

// AnyJSON is JSON that only a client reads; nil for a column that is empty.
func AnyJSON(text string) json.RawMessage {
	if text == "" {
		return nil
	}
	return json.RawMessage(text)
}

// LikeText writes a text so that LIKE takes it to the letter.
var LikeText = strings.NewReplacer("!", "!!", "%", "!%", "_", "!_")
