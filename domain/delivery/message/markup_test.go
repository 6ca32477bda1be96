package message

import (
	"testing"

	"castellan/domain/kit/storetest"
)

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
		storetest.Equal(t, m.inside(), inside, text)
		var parts markup
		for i := range len(text) {
			parts.read(text[i : i+1])
		}
		storetest.Equal(t, parts.inside(), inside, text, "byte by byte")
	}
}

// A tag of a language has subtags of one to eight letters or digits, and begins with two letters at least.
func TestLanguageTags(t *testing.T) {
	for tag, want := range map[string]bool{"tr": true, "aa": true, "zz": true, "AA": true, "ZZ": true, "tr-TR": true,
		"zh-Hant-1": true, "de-01234567": true, "abcdefgh": true, "x-abcdefgh": false, "": false, "t": false,
		"tr-": false, "-tr": false, "abcdefghi": false, "tr-abcdefghi": false, "t2": false, "12": false, "tr_TR": false,
		"tr-T`": false, "tr-T{": false, "tr-T@": false, "tr-T[": false, "tr-T/": false, "tr-T:": false, "tü": false} {
		storetest.Equal(t, isLanguage(tag), want, tag)
	}
	for tag, want := range map[string]bool{"ar": true, "he": true, "fa": true, "ur": true, "AR-eg": true, "ar_SA": true,
		"tr": false, "en-ar": false, "arz": false, "": false} {
		storetest.Equal(t, isRightToLeft(tag), want, tag)
	}
}
