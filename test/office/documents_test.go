package office

import (
	"bytes"
	"encoding/json"
	"errors"
	"io/fs"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"castellan/domain/kit/storetest"
	"castellan/internal/blackbox"
	"castellan/web"
)

// The documents below a base path lead to every endpoint and to the socket (D-GEN-15).
func TestDocumentsLinkEndpointsBelowBasePath(t *testing.T) {
	const base = "/auth-service/v1"
	blackbox.Story(t, func(t *testing.T, s *blackbox.Site) {
		s.Set("HTTP_BASE_PATH=" + base)
		n := s.Start()
		from := storetest.Value(url.Parse(n.URL + base + "/openapi.json"))(t)
		healthy := func(settings ...string) blackbox.Output {
			return s.CommandWith(append(settings, "HTTP_ADDR="+from.Host), "", "health")
		}
		if got := healthy(); got.Code != 0 || got.Out != `{"status":"ok"}`+"\n" {
			t.Errorf("health: exit %d, %s%s", got.Code, got.Out, got.ErrOut)
		}
		if got := healthy("HTTP_BASE_PATH=/else"); got.Code != 1 || !strings.Contains(got.ErrOut, "404") {
			t.Errorf("health at another path: exit %d, %s%s", got.Code, got.Out, got.ErrOut)
		}
		var api struct{ Servers []struct{ URL string } }
		n.Ok(t, "GET", from.Path, nil, nil).Read(t, &api)
		if len(api.Servers) != 1 {
			t.Fatalf("servers: %v", api.Servers)
		}
		server := storetest.Value(from.Parse(api.Servers[0].URL))(t)
		f := blackbox.NewClient(server.String()).Login(t, s.Seeded("user"))

		var events struct {
			Channels map[string]struct{ Address string }
		}
		n.Ok(t, "GET", base+"/asyncapi.json", nil, nil).Read(t, &events)
		socket, err := from.Parse(events.Channels["twoFactor"].Address)
		if err != nil || socket.Path != base+"/2fa" {
			t.Fatalf("the socket is at %v, %v", socket, err)
		}
		blackbox.NewClient(server.String()).Socket(t, f)
	})
}

// Documents, pages and their parts are sent compressed, and not at all to a client that has them.
func TestDocumentsAreCompressedAndCached(t *testing.T) {
	t.Parallel()
	n := blackbox.NewSite(t, "sqlite").Start()
	for path, most := range map[string]int{
		"/openapi.json": 112_000, "/openapi.json?tag=Jobs": 5_000, "/asyncapi.json": 4_000, "/docs": 2_000,
		"/": 10_000, "/authenticator": 4_000,
		"/static/style.css": 8_000, "/static/docs.js": 6_000,
	} {
		plain := n.Ok(t, "GET", path, nil, nil)
		packed := n.Ok(t, "GET", path, nil, blackbox.Headers{"Accept-Encoding": "gzip"})
		if len(packed.Body) > most || packed.Header.Get("Content-Encoding") != "gzip" || packed.Header.Get("Vary") == "" {
			t.Errorf("%s: %d bytes of %d, %v", path, len(packed.Body), len(plain.Body), packed.Header)
		}
		again := n.Do(t, "GET", path, nil, blackbox.Headers{"If-None-Match": plain.Header.Get("Etag")})
		if again.Status != 304 || len(again.Body) != 0 || again.Header.Get("X-Request-Id") == "" {
			t.Errorf("%s again: %d with %d bytes, %v", path, again.Status, len(again.Body), again.Header)
		}
	}
	for _, query := range []string{"?tag=", "?tag=None", "?tag=Jobs%20"} {
		a := n.Do(t, "GET", "/openapi.json"+query, nil, nil)
		text := string(a.Body)
		if a.Status != 400 || !strings.Contains(text, `"field":"tag"`) || !strings.Contains(text, "Jobs, Setup") {
			t.Errorf("%s: %s", query, a)
		}
	}
}

// Clients generated from the published document compile and are small, and a program of an integrator logs in and out
// with each. The script for Postman and the package of the client modules log in too.
func TestGeneratedClients(t *testing.T) {
	t.Parallel()
	s := blackbox.NewSite(t, "sqlite")
	n := s.Start()
	for _, c := range []struct {
		name  string
		build func(t *testing.T, c thirdParty) []string // returns the command that runs the program
		as    string
	}{{"Go", goClient, "admin"}, {"TypeScript", typeScriptClient, "user"}, {"Postman", postmanScript, "user"},
		{"package", browserPackage, "user"}} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			tools := storetest.Value(filepath.Abs(filepath.Join("..", "..", "tools")))(t)
			program := c.build(t, thirdParty{t: t, tools: tools, dir: t.TempDir()})
			who := s.Seeded(c.as)
			cmd := exec.CommandContext(t.Context(), program[0], program[1:]...)
			cmd.Env = append(os.Environ(), "BASE_URL="+n.URL, "EMAIL="+who.Mail, "PASSWORD="+who.Password)
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
		})
	}
}

// thirdParty is a client to be built: tools is the folder of its sources, dir an empty one for the generated
// files.
type thirdParty struct {
	t          *testing.T
	tools, dir string
}

func (c thirdParty) run(in string, command ...string) {
	c.t.Helper()
	cmd := exec.CommandContext(c.t.Context(), command[0], command[1:]...)
	cmd.Dir = in
	if out, err := cmd.CombinedOutput(); err != nil {
		c.t.Fatalf("%v: %v\n%s", command, err, out)
	}
}

// atMost bounds the lines of a generated file. The bound is the measured size with some room; raise it only for new
// operations.
func (c thirdParty) atMost(file string, lines int) {
	c.t.Helper()
	text := storetest.Value(os.ReadFile(file))(c.t)
	if n := bytes.Count(text, []byte("\n")); n > lines {
		c.t.Errorf("%s has %d lines, more than %d", filepath.Base(file), n, lines)
	}
}

// goClient generates into its own folder and overlays the file on the unchanged source tree.
func goClient(t *testing.T, c thirdParty) []string {
	made, program := filepath.Join(c.dir, "api.gen.go"), filepath.Join(c.dir, "goclient")
	c.run(c.tools, "go", "tool", "oapi-codegen", "-config", "goclient/oapi-codegen.yaml", "-o", made,
		"../docs/openapi.json")
	c.atMost(made, 45_000)
	overlay := storetest.Value(json.Marshal(map[string]any{"Replace": map[string]string{
		filepath.Join(c.tools, "goclient", "api.gen.go"): made}}))(t)
	file := filepath.Join(c.dir, "overlay.json")
	storetest.Must(t, os.WriteFile(file, overlay, 0o600))
	c.run(c.tools, "go", "build", "-tags", "generated", "-overlay", file, "-o", program, "./goclient")
	return []string{program}
}

func typeScriptClient(t *testing.T, c thirdParty) []string {
	source := filepath.Join(c.tools, "openapi")
	modules := c.modules()
	storetest.Must(t, os.Symlink(modules, filepath.Join(c.dir, "node_modules")))
	for _, name := range []string{"package.json", "tsconfig.json", "client.ts"} {
		storetest.Must(t, copied(filepath.Join(source, name), filepath.Join(c.dir, name)))
	}
	bin, node, types := filepath.Join(modules, ".bin"), c.node(), filepath.Join(c.dir, "api.d.ts")
	c.run(source, node, "types.mjs", "../../docs/openapi.json", types)
	c.atMost(types, 7_500)
	c.run(c.dir, node, filepath.Join(bin, "tsc"), "-p", ".", "--outDir", "out")
	return []string{node, filepath.Join(c.dir, "out", "client.js")}
}

// modules is the folder of the npm packages of the tools.
func (c thirdParty) modules() string {
	c.t.Helper()
	folder := filepath.Join(c.tools, "openapi", "node_modules")
	if _, err := os.Stat(folder); err != nil {
		c.t.Fatal("the npm packages of tools/openapi are missing: make test-deps installs them")
	}
	return folder
}

// node is the pinned one, if npm has it for this system.
func (c thirdParty) node() string {
	pinned := filepath.Join(c.tools, "openapi", "node_modules", ".bin", "node")
	if _, err := os.Stat(pinned); err != nil {
		return "node"
	}
	return pinned
}

func postmanScript(_ *testing.T, c thirdParty) []string {
	return []string{c.node(), filepath.Join(c.tools, "openapi", "postman.mjs"),
		filepath.Join(c.tools, "..", "docs", "clients.md")}
}

// browserPackage packs the client modules as for a release. The package has the files that the service serves, and the
// example for Vite builds with it, types checked.
func browserPackage(t *testing.T, c thirdParty) []string {
	modules, node, root := c.modules(), c.node(), filepath.Join(c.tools, "..")
	made, example := filepath.Join(c.dir, "js"), filepath.Join(c.dir, "example")
	c.run(root, node, "client/js/pack.mjs", made)
	c.run(root, "npm", "pack", "--offline", "--ignore-scripts", "--pack-destination", c.dir, made)
	packed := filepath.Join(c.dir, "castellan-client-"+web.Version+".tgz")
	installed := filepath.Join(example, "node_modules", "@castellan", "client")
	err := errors.Join(os.MkdirAll(installed, 0o700),
		os.Symlink(filepath.Join(modules, "vite"), filepath.Join(example, "node_modules", "vite")))
	for _, name := range []string{"index.html", "main.ts", "login.ts", "package.json", "tsconfig.json"} {
		err = errors.Join(err, copied(filepath.Join(root, "examples", "vite", name), filepath.Join(example, name)))
	}
	storetest.Must(t, err)
	c.run(installed, "tar", "-xzf", packed, "--strip-components=1")
	served, err := fs.Glob(web.FS(), "castellan-*.js")
	if err != nil || len(served) < 5 {
		t.Fatalf("the service has the modules %v, %v", served, err)
	}
	for _, name := range served {
		body, _, _ := web.Page(name)
		if text, err := os.ReadFile(filepath.Join(installed, name)); err != nil || !bytes.Equal(text, body) {
			t.Errorf("%s of the package is not the one that is served: %v", name, err)
		}
	}
	c.run(example, node, filepath.Join(modules, "typescript", "bin", "tsc"), "-p", ".", "--outDir", ".")
	c.run(example, node, filepath.Join(modules, "vite", "bin", "vite.js"), "build")
	program := filepath.Join(example, "package.mjs")
	storetest.Must(t, copied(filepath.Join(c.tools, "openapi", "package.mjs"), program))
	return []string{node, program}
}

// copied copies a file.
func copied(from, to string) error {
	text, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	return os.WriteFile(to, text, 0o600)
}
