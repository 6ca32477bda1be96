package main

import (
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/evanw/esbuild/pkg/api"
)

// The development server serves the built files, rewrites the page and proxies other requests.
func TestDevServer(t *testing.T) {
	service := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/console/users" {
			w.Header().Set("Content-Type", "text/html; charset=utf-8")
			io.WriteString(w, `<script type="module" src="/console/files/main-AB12.js"></script>`)
			return
		}
		io.WriteString(w, "service "+r.URL.Path+" "+r.Host)
	}))
	defer service.Close()
	target, err := url.Parse(service.URL)
	if err != nil {
		t.Fatal(err)
	}
	s := newDevServer(target)
	s.update(&api.BuildResult{OutputFiles: []api.OutputFile{{Path: "/out/main.js", Contents: []byte("built")}}})
	server := httptest.NewServer(s)
	defer server.Close()
	for path, want := range map[string]string{
		"/console/files/main.js": "built",
		"/console/users": `<script type="module" src="/console/files/main.js"></script>` + "\n" +
			`<script src="/console/files/reload.js"></script>`,
		"/admin/jobs": "service /admin/jobs " + strings.TrimPrefix(server.URL, "http://"),
	} {
		answer, err := http.Get(server.URL + path)
		if err != nil {
			t.Fatal(err)
		}
		got, err := io.ReadAll(answer.Body)
		answer.Body.Close()
		if err != nil || string(got) != want {
			t.Errorf("%s: %q, want %q (%v)", path, got, want, err)
		}
	}
}
