package office

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"castellan/domain/kit/storetest"
)

// The client under the path of another repository: "go get" finds its tag there, and brings no module of the service.
// An integrator's program builds with it.
func TestGoClientModule(t *testing.T) {
	t.Parallel()
	const address = "git.example/us/castellan.git"
	root := storetest.Value(filepath.Abs(filepath.Join("..", "..")))(t)
	repository, program := t.TempDir(), t.TempDir()
	cache := strings.TrimSpace(ran(t, root, nil, "go", "env", "GOMODCACHE"))
	env := append(os.Environ(), "GOPROXY=file://"+filepath.Join(cache, "cache", "download")+",direct", "GONOSUMDB=*",
		"GONOPROXY=git.example", "GOMODCACHE="+t.TempDir(), "GIT_CONFIG_GLOBAL="+os.DevNull,
		"GOFLAGS=-trimpath -modcacherw", // with -trimpath the standard library comes from the build cache
		"GIT_AUTHOR_NAME=t", "GIT_AUTHOR_EMAIL=t@t", "GIT_COMMITTER_NAME=t", "GIT_COMMITTER_EMAIL=t@t",
		"GIT_CONFIG_COUNT=1", "GIT_CONFIG_KEY_0=url.file://"+repository+".insteadOf",
		"GIT_CONFIG_VALUE_0=https://"+strings.TrimSuffix(address, ".git"))
	storetest.Must(t, os.CopyFS(filepath.Join(repository, "client"), os.DirFS(filepath.Join(root, "client"))))
	storetest.Must(t, os.WriteFile(filepath.Join(repository, "VERSION"), []byte("0.10.0\n"), 0o600))
	ran(t, repository, env, "git", "init", "--quiet")
	ran(t, repository, env, "git", "add", ".")
	ran(t, repository, env, filepath.Join(root, "scripts", "client-path.sh"), address+"/client")
	ran(t, repository, env, "git", "commit", "--quiet", "--all", "--message", "m")
	ran(t, repository, env, "git", "tag", "client/v0.10.0")

	ran(t, program, env, "go", "mod", "init", "shop.example/orders")
	ran(t, program, env, "go", "get", address+"/client@v0.10.0")
	text := `package main

import "` + address + `/client"

func main() {
	c, err := client.New("https://id.example.com")
	println(c.URL, err == nil && client.CodeOf(err) == "")
}
`
	storetest.Must(t, os.WriteFile(filepath.Join(program, "main.go"), []byte(text), 0o600))
	storetest.Equal(t, ran(t, program, env, "go", "run", "."), "https://id.example.com true\n", "the program printed")
	modules := strings.Fields(ran(t, program, env, "go", "list", "-deps", "-f", "{{with .Module}}{{.Path}}{{end}}", "."))
	for _, m := range modules {
		if m != "shop.example/orders" && m != address+"/client" && !strings.HasPrefix(m, "github.com/gobwas/") &&
			m != "github.com/golang-jwt/jwt/v5" {
			t.Errorf("the program depends on %s", m)
		}
	}
	if len(modules) < 3 {
		t.Errorf("the modules are %v", modules)
	}
}

// ran returns the output of a command in a folder; a nil env is that of the test.
func ran(t *testing.T, dir string, env []string, command ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), command[0], command[1:]...)
	cmd.Dir, cmd.Env = dir, env
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %v\n%s", command, err, out)
	}
	return string(out)
}
