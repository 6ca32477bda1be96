package main

import (
	"bytes"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"

	"github.com/evanw/esbuild/pkg/api"
)

// devAddress is the address of the development server.
const devAddress = "127.0.0.1:8090"

// files is the folder of the console's files below the base path of the service.
const files = "/console/files/"

// hashed matches the entry files in the page of the service, whose names carry a hash.
var hashed = regexp.MustCompile(files + `(main|tokens)-[^".]+\.(js|css)`)

// reload is the script that reloads the page after a build.
const reload = `const events = document.currentScript.src.replace('reload.js', 'events');
new EventSource(events).onmessage = () => location.reload();`

// devServer serves the latest build of the sources and proxies every other request to a running service.
type devServer struct {
	proxy *httputil.ReverseProxy

	mu    sync.Mutex
	files map[string][]byte
	built chan struct{} // closed by the next build
}

// dev builds the sources after each change and serves them until the process ends.
func dev(sources, service string) error {
	target, err := url.Parse(service)
	if err != nil {
		return err
	}
	s := newDevServer(target)
	o := options(sources)
	o.EntryNames, o.Sourcemap = "[name]", api.SourceMapInline
	o.MinifySyntax, o.MinifyWhitespace, o.MinifyIdentifiers = false, false, false
	o.LogLevel = api.LogLevelInfo
	o.Plugins = append(o.Plugins, api.Plugin{Name: "dev", Setup: func(build api.PluginBuild) {
		build.OnEnd(func(result *api.BuildResult) (api.OnEndResult, error) {
			s.update(result)
			return api.OnEndResult{}, nil
		})
	}})
	build, failed := api.Context(o)
	if failed != nil {
		return failed
	}
	defer build.Dispose()
	if err := build.Watch(api.WatchOptions{}); err != nil {
		return err
	}
	fmt.Fprintf(os.Stderr, "http://%s/console uses the service at %s\n", devAddress, service)
	return http.ListenAndServe(devAddress, s)
}

func newDevServer(target *url.URL) *devServer {
	s := &devServer{built: make(chan struct{})}
	s.proxy = &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(target)
			r.Out.Host = r.In.Host // the origin of the page
			r.Out.Header.Del("Accept-Encoding")
		},
		ModifyResponse: modifyPage,
	}
	return s
}

// update publishes the files of a build. A failed build keeps the previous files.
func (s *devServer) update(result *api.BuildResult) {
	if len(result.Errors) > 0 {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.files = map[string][]byte{"reload.js": []byte(reload)}
	for _, f := range result.OutputFiles {
		s.files[filepath.Base(f.Path)] = f.Contents
	}
	close(s.built)
	s.built = make(chan struct{})
}

func (s *devServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	_, name, ok := strings.Cut(r.URL.Path, files)
	if !ok {
		s.proxy.ServeHTTP(w, r)
		return
	}
	s.mu.Lock()
	content, found := s.files[name]
	built := s.built
	s.mu.Unlock()
	w.Header().Set("Cache-Control", "no-store")
	switch {
	case name == "events":
		w.Header().Set("Content-Type", "text/event-stream")
		_ = http.NewResponseController(w).Flush()
		select {
		case <-built:
			fmt.Fprint(w, "data: built\n\n")
		case <-r.Context().Done():
		}
	case !found:
		http.NotFound(w, r)
	default:
		w.Header().Set("Content-Type", mime.TypeByExtension(path.Ext(name)))
		_, _ = w.Write(content)
	}
}

// modifyPage makes the page of the console load the files of the development server.
func modifyPage(answer *http.Response) error {
	if !strings.HasPrefix(answer.Header.Get("Content-Type"), "text/html") ||
		!strings.Contains(answer.Request.URL.Path, "/console") {
		return nil
	}
	page, err := io.ReadAll(answer.Body)
	if err != nil {
		return err
	}
	if err := answer.Body.Close(); err != nil {
		return err
	}
	main := regexp.MustCompile(`src="([^"]*` + files + `)main\.js"></script>`)
	page = hashed.ReplaceAll(page, []byte(files+"$1.$2"))
	page = main.ReplaceAll(page, []byte(`$0`+"\n"+`<script src="${1}reload.js"></script>`))
	answer.Body = io.NopCloser(bytes.NewReader(page))
	answer.ContentLength = int64(len(page))
	answer.Header.Set("Content-Length", strconv.Itoa(len(page)))
	return nil
}
