package web_test

import (
	"image/png"
	"io/fs"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"

	"castellan/domain/kit/geo"
	"castellan/web"
	"castellan/web/webtest"
)

func TestPage(t *testing.T) {
	for name, want := range map[string]string{
		"index.html": "text/html; charset=utf-8", "outbox.html": "text/html; charset=utf-8", "docs.html": "text/html; " +
			"charset=utf-8",
		"app.js": "text/javascript; charset=utf-8", "castellan-client.js": "text/javascript; charset=utf-8",
		"castellan-callback.js": "text/javascript; charset=utf-8",
		"style.css":             "text/css; charset=utf-8", "icon.svg": "image/svg+xml",
	} {
		body, contentType, ok := web.Page(name)
		if !ok || len(body) == 0 || contentType != want {
			t.Errorf("%s: %d bytes, %q, %v", name, len(body), contentType, ok)
		}
	}
	for _, name := range []string{"", ".", "..", "../web.go", "static/app.js", `..\web.go`, "/index.html", "no.html",
		"index", ".html", "index.html\x00"} {
		if _, _, ok := web.Page(name); ok {
			t.Errorf("%q is served", name)
		}
	}
}

// Every country has both flags, and there are no other flags.
func TestFlag(t *testing.T) {
	for _, code := range geo.Codes() {
		for kind, want := range map[string]string{".svg": "image/svg+xml", ".png": "image/png"} {
			body, contentType, ok := web.Flag(code, kind)
			if !ok || len(body) == 0 || contentType != want {
				t.Errorf("%s%s: %d bytes, %q, %v", code, kind, len(body), contentType, ok)
			}
			switch text := string(body); {
			case kind == ".svg" && (!strings.HasPrefix(text, "<svg ") || strings.Contains(text,
				"<script") || strings.Contains(text, "href")):
				t.Errorf("%s: not a picture alone", code)
			case kind == ".png":
				if c, err := png.DecodeConfig(strings.NewReader(text)); err != nil || c.Width != 240 || c.Height != 160 {
					t.Errorf("%s: %+v, %v", code, c, err)
				}
			}
		}
	}
	for _, name := range [][2]string{{"XK", ".svg"}, {"tr", ".svg"}, {"", ".svg"}, {"TR", ""}, {"TR", ".gif"},
		{"TR", "/.svg"}, {"..", ".svg"}, {"LICENSE", ""}, {"./TR", ".svg"}} {
		if _, _, ok := web.Flag(name[0], name[1]); ok {
			t.Errorf("%q is served", name)
		}
	}
}

// The files meet the requirements of the content security policy and of an offline machine.
func TestFilesStandAlone(t *testing.T) {
	var (
		outside   = regexp.MustCompile(`(?i)(?:https?:)?//[a-z0-9.-]+\.[a-z]{2,}`)
		harmless  = []string{"http://www.w3.org", "https://id.example.com"} // a namespace, and the example of a comment
		inline    = regexp.MustCompile(`(?i)<script>|<script [^>]*>[^<]|<style|\sstyle=|\son[a-z]+=|javascript:`)
		reference = regexp.MustCompile(`(?:src|href)="([^"#]*static/)([^"]+)"`)
		imported  = regexp.MustCompile(`(?:import|from)\s*\(?'\./([^']+)'`)
	)
	files, err := fs.ReadDir(web.FS(), ".")
	if err != nil || len(files) < 10 {
		t.Fatalf("%d files, %v", len(files), err)
	}
	for _, file := range files {
		body, contentType, ok := web.Page(file.Name())
		if !ok {
			t.Errorf("%s is embedded and cannot be served", file.Name())
			continue
		}
		text := string(body)
		for _, found := range outside.FindAllString(text, -1) {
			if !slices.Contains(harmless, found) {
				t.Errorf("%s names an address outside: %s", file.Name(), found)
			}
		}
		if strings.HasPrefix(contentType, "text/html") {
			if found := inline.FindString(text); found != "" {
				t.Errorf("%s holds inline code or style: %s", file.Name(), found)
			}
		}
		for _, found := range append(reference.FindAllStringSubmatch(text, -1), imported.FindAllStringSubmatch(text, -1)...) {
			name := found[len(found)-1]
			if _, _, ok := web.Page(name); !ok {
				t.Errorf("%s asks for %s, which is not there", file.Name(), name)
			}
		}
		most := 400
		if file.Name() == "castellan-client.js" {
			most = 500 // an integrator copies this one file
		}
		if lines := strings.Count(text, "\n"); path.Ext(file.Name()) == ".js" && lines > most {
			t.Errorf("%s has %d lines", file.Name(), lines)
		}
	}
}

// The contents of the modules, checked in one browser.
func TestModules(t *testing.T) {
	s := newService(t)
	tab := webtest.Browser(t)
	tab.Open(s.URL + "/")
	t.Run("texts", func(t *testing.T) { textsAreThere(t, tab.For(t)) })
}

// Every text exists in every language, every requested text exists, and a page uses every text.
func textsAreThere(t *testing.T, tab *webtest.Tab) {
	keys := webtest.Value[map[string][]string](tab, `import('/static/docs-texts.js')
		.then(() => import('/static/authenticator-texts.js'))
		.then(() => import('/static/setup-texts.js')).then(() => import('/static/texts.js'))
		.then(({ texts }) =>
			Object.fromEntries(Object.entries(texts).map(([tag, all]) => [tag, Object.keys(all).sort()])))`)
	for tag, list := range keys {
		if !slices.Equal(list, keys["en"]) {
			t.Errorf("the texts of %s are %d, of en %d: %v", tag, len(list), len(keys["en"]), difference(list, keys["en"]))
		}
	}
	if len(keys) != 3 {
		t.Errorf("languages: %d", len(keys))
	}
	asked := regexp.MustCompile(
		`\bt\('(\w+)'|data-t(?:-label|-placeholder)?="(\w+)"|(?:key|kind): '(\w+)'|(?:leave|note|verify)\('(\w+)'`,
	)
	var pages strings.Builder
	_ = fs.WalkDir(web.FS(), ".", func(name string, _ fs.DirEntry, _ error) error {
		body, _, ok := web.Page(name)
		if !ok {
			return nil
		}
		if !strings.HasSuffix(name, "texts.js") {
			pages.Write(body)
		}
		for _, found := range asked.FindAllStringSubmatch(string(body), -1) {
			key := strings.Join(found[1:], "")
			if !slices.Contains(keys["en"], key) && !slices.Contains([]string{"ok", "bad", "locked"}, key) {
				t.Errorf("%s asks for the text %q, which does not exist", name, key)
			}
		}
		return nil
	})
	built := regexp.MustCompile(`^method[A-Z]+$`) // from the name of a method
	for _, key := range keys["en"] {
		named := regexp.MustCompile(`'` + key + `'|data-t(-label|-placeholder)?="` + key + `"`)
		if !built.MatchString(key) && !named.MatchString(pages.String()) {
			t.Errorf("no page uses the text %q", key)
		}
	}
}

func difference(a, b []string) (only []string) {
	for _, one := range append(slices.Clone(a), b...) {
		if slices.Contains(a, one) != slices.Contains(b, one) {
			only = append(only, one)
		}
	}
	return only
}
