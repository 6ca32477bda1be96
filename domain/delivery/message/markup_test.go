package message

import "testing"

// A text is outside of tags, attributes, comments, styles and scripts.
func TestMarkup(t *testing.T) {
	for text, inside := range map[string]bool{
		"": false, "a": false, "<": true, "<a": true, "<z": true, "<A": true, "<Z": true, "</": true, "<!": true, "<?": true,
		"<{": false, "<`": false, "<1": false, "< a": false, "<<": true, "<<1": false, "<<a": true, "<a>": false,
		`<a b="`: true, `<a b=">`: true, `<a b=">">`: false, `<a b='">'>`: false, `<a b='>"`: true,
		"<!-- >": true, "<!-- --": true, "<!-- -->": false, "<!--->": false, "<!---": true, "<!-x>": false,
		"<style>": true, "<STYLE>a</b>": true, "<style>a</style": true, "<style>a</STYLE>": false, "<style x>": true,
		"<styles>": false, "<stylea>": false, "<stylez>": false, "<style1>": true,
		"<script>a<b></style>": true, "<script></script>": false, "<p>a</p>": false,
	} {
		var m markup
		m.read(text)
		if m.inside() != inside {
			t.Errorf("%q: inside is %t", text, m.inside())
		}
		var parts markup
		for i := range len(text) {
			parts.read(text[i : i+1])
		}
		if parts.inside() != inside {
			t.Errorf("%q, byte by byte: inside is %t", text, parts.inside())
		}
	}
}
