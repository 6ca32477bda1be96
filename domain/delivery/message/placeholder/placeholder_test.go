package placeholder_test

import (
	"strings"
	"testing"

	"castellan/domain/delivery/message/placeholder"
)

func TestParseAndFill(t *testing.T) {
	values := map[string]string{"a": "1", "b": "{{a}}"}
	for text, want := range map[string]string{
		"":                   "",
		"plain":              "plain",
		"{{a}}":              "1",
		"{{ a }}":            "1",
		"x{{a}}y{{b}}z":      "x1y{{a}}z",
		"x{{a}}":             "x1",
		"{{a}}x":             "1x",
		"{{a}}{{a}}":         "11",
		"}} {a} { {{a}} }":   "}} {a} { 1 }",
		"{{b}}{{b}} {{ b}}.": "{{a}}{{a}} {{a}}.",
	} {
		segments, err := placeholder.Parse(text, "a", "b")
		if err != nil {
			t.Errorf("%q: %v", text, err)
			continue
		}
		if got := placeholder.Fill(segments, func(n string) string { return values[n] }); got != want {
			t.Errorf("%q: got %q, want %q", text, got, want)
		}
	}
}

func TestParseRefuses(t *testing.T) {
	for text, part := range map[string]string{
		"{{c}}":      `unknown placeholder "c"`,
		"{{}}":       `unknown placeholder ""`,
		"{{A}}":      `unknown placeholder "A"`,
		"x {{a":      "not closed",
		"{{{a}}":     `unknown placeholder "{a"`,
		"{{a}} {{":   "not closed",
		"{{\r\na}}":  "unknown placeholder",
		"{{a {{b}}}": "unknown placeholder",
	} {
		if _, err := placeholder.Parse(text, "a", "b"); err == nil || !strings.Contains(err.Error(), part) {
			t.Errorf("%q: got %v, want an error with %q", text, err, part)
		}
	}
}

func FuzzParse(f *testing.F) {
	for _, s := range []string{"", "{{a}}", "x{{ b }}y", "{{", "}}", "{{{a}}}"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		segments, err := placeholder.Parse(text, "a", "b")
		if err != nil {
			return
		}
		// Filling every blank with its own spelling restores the text, except for spaces inside the braces.
		got := placeholder.Fill(segments, func(n string) string { return "{{" + n + "}}" })
		squeeze := func(s string) string { return strings.ReplaceAll(s, " ", "") }
		if squeeze(got) != squeeze(text) {
			t.Fatalf("%q became %q", text, got)
		}
	})
}
