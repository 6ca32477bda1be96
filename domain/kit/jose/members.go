package jose

import (
	"bytes"
	"encoding/json"
	"io"
)

// Members returns the members of a JSON object: exact names, none repeated, nothing after the object. Decoding into a
// struct would accept names in any case, and the last of two. false for any other text. It is for signed texts, whose
// readers must agree about every member.
func Members(data []byte) (map[string]json.RawMessage, bool) {
	d := json.NewDecoder(bytes.NewReader(data))
	if t, err := d.Token(); err != nil || t != json.Delim('{') {
		return nil, false
	}
	all := map[string]json.RawMessage{}
	for d.More() {
		t, err := d.Token()
		name, ok := t.(string)
		if err != nil || !ok {
			return nil, false
		}
		var value json.RawMessage
		if _, twice := all[name]; twice || d.Decode(&value) != nil {
			return nil, false
		}
		all[name] = value
	}
	if _, err := d.Token(); err != nil {
		return nil, false
	}
	_, err := d.Token()
	return all, err == io.EOF
}
