package office

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"castellan/internal/blackbox"
)

// The commands of the pages for a running service succeed beside it, in order.
func TestCommandsOfOperatorsPages(t *testing.T) {
	t.Parallel()
	s, folder, count := blackbox.NewSite(t, "sqlite"), t.TempDir()+"/", 0
	s.Start()
	for _, page := range []string{"operations/watch", "operations/secure", "backup"} {
		text, err := os.ReadFile("../../docs/" + page + ".md")
		if err != nil {
			t.Fatal(err)
		}
		for _, block := range regexp.MustCompile("(?s)```sh\n(.*?)```").FindAllStringSubmatch(string(text), -1) {
			for line := range strings.Lines(block[1]) {
				words := strings.Fields(strings.ReplaceAll(line, "/backup/", folder))
				if len(words) == 0 || words[0] != "castellan" {
					continue
				}
				count++
				if got := s.Command("", words[1:]...); got.Code != 0 {
					t.Errorf("%s: %s: exit %d, %s%s", page, line, got.Code, got.Out, got.ErrOut)
				}
			}
		}
	}
	if count < 8 {
		t.Errorf("ran %d commands: the search is broken", count)
	}
}
