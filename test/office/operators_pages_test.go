package office

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"castellan/domain/kit/storetest"
	"castellan/internal/blackbox"
	"castellan/internal/porttest"
)

// commands returns the code blocks of a page for operators in docs, or of one of its sections ("PAGE#SECTION"). changes
// replace texts, as an operator does.
func commands(t *testing.T, page string, changes ...string) (blocks []string) {
	t.Helper()
	page, section, _ := strings.Cut(page, "#")
	text := deployed(t, "docs/"+page+".md")
	if section != "" {
		_, text, _ = strings.Cut(text, "\n## "+section+"\n")
		text, _, _ = strings.Cut(text, "\n## ")
	}
	text = strings.NewReplacer(changes...).Replace(text)
	for _, block := range regexp.MustCompile("(?s)```sh\n(.*?)```").FindAllStringSubmatch(text, -1) {
		blocks = append(blocks, block[1])
	}
	if len(blocks) == 0 {
		t.Fatalf("%s has no commands", page)
	}
	return blocks
}

// succeeds runs blocks of commands in order, in a folder.
func succeeds(t *testing.T, s *blackbox.Site, folder string, blocks ...string) {
	t.Helper()
	if got := s.Shell(folder, strings.Join(blocks, "")); got.Code != 0 {
		t.Errorf("exit %d: %s%s", got.Code, got.Out, got.ErrOut)
	}
}

// The commands of the pages for a running service succeed beside it. The backup that they make is restored as its page
// says.
func TestCommandsOfOperatorsPages(t *testing.T) {
	t.Parallel()
	s, folder := blackbox.NewSite(t, "sqlite"), t.TempDir()
	account := s.AddUser("user")
	s.Start()
	for _, page := range []string{"operations/watch", "operations/secure", "operations/repair"} {
		succeeds(t, s, folder, commands(t, page, "ACCOUNT", account.ID)...)
	}
	blocks := commands(t, "backup", "/backup/", folder+"/")
	succeeds(t, s, folder, blocks[0])
	wallet := []byte("withdrawalId,externalId,state,txId\n")
	storetest.Must(t, os.WriteFile(filepath.Join(folder, "wallet.csv"), wallet, 0o600))
	place := blackbox.NewSite(t, "sqlite").Empty().Set("KEYS_MASTER_FILE=" + filepath.Join(s.Dir, masterFile))
	succeeds(t, place, folder, blocks[1:]...)
}

// The commands of the page of installation start a service in production mode and create its first administrator.
func TestCommandsOfInstallation(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	s := blackbox.NewSite(t, "sqlite").Production().Set("HTTP_ADDR="+porttest.Free(t), "DATABASE_URL=")
	succeeds(t, s, folder, slices.Concat([]string{"read() { PASSWORD='correct horse battery staple 1'; }\n"},
		commands(t, "operations/install", "/etc/", folder+"/etc/", "/var/lib/", folder+"/lib/"))...)
	storetest.Must(t, storetest.Err(os.Stat(folder+"/lib/castellan/castellan.db")))
}

func TestCommandsOfGrowingAndSizing(t *testing.T) {
	t.Parallel()
	s := blackbox.NewSite(t, "postgres")
	s.AddUser("user") // creates the tables
	succeeds(t, s, t.TempDir(), slices.Concat(commands(t, "operations/grow"), commands(t, "operations/size"))...)
}
