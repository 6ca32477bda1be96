package office

import (
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"castellan/domain/kit/storetest"
	"castellan/internal/blackbox"
)

// The program prints the licences of every linked module, each in the linked version, and the image contains
// the same file.
func TestLicensesCoverEveryLinkedModule(t *testing.T) {
	t.Parallel()
	const format = "{{with .Module}}{{if not .Main}}{{.Path}} {{.Version}}{{end}}{{end}}"
	list := exec.Command("go", "list", "-deps", "-f", format, "../../cmd/castellan")
	list.Env = append(os.Environ(), "GOOS=linux", "GOARCH=amd64", "CGO_ENABLED=0")
	modules, err := list.Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	printed := blackbox.NewSite(t, "sqlite").Command("", "version", "--licenses")
	storetest.Equal(t, printed.Code, 0, "exit", printed.ErrOut)
	lines := slices.Compact(slices.Sorted(strings.Lines(string(modules))))
	for _, module := range lines {
		if module = strings.TrimSpace(module); module == "" || strings.HasPrefix(module, "castellan/") {
			continue
		}
		if !strings.Contains(printed.Out, "\n"+module+": ") {
			t.Errorf("the notices do not name %s: run make generate", module)
		}
	}
	for _, data := range []string{"country-flag-icons", "Unicode CLDR", "IP2Location LITE", "The Go standard library"} {
		if !strings.Contains(printed.Out, "\n"+data+": ") {
			t.Errorf("the notices do not name %s", data)
		}
	}
	file := storetest.Value(os.ReadFile("../../Dockerfile"))(t)
	const copied = "COPY --from=build /src/LICENSE /src/cmd/castellan/THIRD_PARTY_NOTICES /licenses/"
	if !strings.Contains(string(file), copied) {
		t.Errorf("the image has no notices: the Dockerfile lacks %q", copied)
	}
}
