package richtext_test

import (
	"testing"

	"castellan/domain/kit/richtext"
)

// FuzzClean: for any input, cleaned HTML holds no active content and no foreign image (SEC-36). Cleaning it again is
// equally harmless.
func FuzzClean(f *testing.F) {
	for _, seed := range []string{`<p>a</p>`, `<svg><style><img src=x onerror=a()>`, `<a href="java&#9;script:a()">x</a>`,
		`<math><mtext><table><mglyph><style><!--</style><img title="--&gt;&lt;img src=1 onerror=a()&gt;">`,
		`<img src="` + base + `/a.png"><img src=//evil>`, "<noscript><p title=\"</noscript><img src=x onerror=a()>\">"} {
		f.Add(seed)
	}
	p := richtext.New(base)
	f.Fuzz(func(t *testing.T, text string) {
		clean := p.Clean(text)
		read(t, text, clean)
		read(t, text, p.Clean(clean))
	})
}
