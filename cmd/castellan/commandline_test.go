package main

import (
	"io"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"castellan/domain/kit/storetest"
)

type trialLine struct {
	Common string `help:"Of all."`
	Help   bool   `help:"This." short:"h"`

	Stand trialStand `cmd:"" default:"withargs" help:"What happens without a command."`
	Group struct {
		Walk trialWalk `cmd:"" help:"One below."`
	} `cmd:"" name:"set" help:"A group."`
}

type trialStand struct {
	AtLeast int `help:"A number." default:"3"`
}

func (trialStand) Run(*env) error { return nil }

type trialShared struct {
	Where string `arg:"" help:"A word." enum:"north,south"`
}

type trialWalk struct {
	trialShared
	More  []string      `arg:"" optional:"" help:"More words."`
	Need  string        `help:"Needed." required:""`
	Other string        `help:"Needed too." required:""`
	Kinds []string      `help:"Several." enum:"a,b,c,d"`
	Empty string        `help:"One, or none." enum:"x," default:""`
	Limit *uint8        `help:"Small."`
	Grace time.Duration `help:"How long." default:"25h"`
	Force bool          `help:"Yes."`
	Token string        `help:"Secret." env:"TRIAL_TOKEN" default:"none"`
	Dir   string        `help:"Folder." type:"existingdir"`
}

func (*trialWalk) Run(*env) error { return nil }

func (*trialWalk) Help() string { return "Longer words." }

func tryLine(args string, environ ...string) (line trialLine, selected runner, help string, err error) {
	var out strings.Builder
	selected, err = parse(&line, "trial", "About it.", strings.Fields(args), environ, &out)
	return line, selected, out.String(), err
}

// The tags of commands have the meaning that runner documents.
func TestCommandLine(t *testing.T) {
	eight := uint8(8)
	walk := trialWalk{trialShared: trialShared{"north"}, Need: "n", Other: "o", Grace: 25 * time.Hour, Token: "none"}
	dir := storetest.Value(filepath.Abs("."))(t)
	for args, of := range map[string]func(*trialWalk){
		"north":                       func(*trialWalk) {},
		"--force north y,z +9":        func(w *trialWalk) { w.Force, w.More = true, []string{"y,z", "+9"} },
		"north --kinds a,b --kinds d": func(w *trialWalk) { w.Kinds = []string{"a", "b", "d"} },
		"north --common c":            func(*trialWalk) {},
		"north --limit 8":             func(w *trialWalk) { w.Limit = &eight },
		"north --grace 1m":            func(w *trialWalk) { w.Grace = time.Minute },
		"south --token t":             func(w *trialWalk) { w.Where, w.Token = "south", "t" },
		"--dir . -- north --need":     func(w *trialWalk) { w.Dir, w.More = dir, []string{"--need"} },
		"--empty= north":              func(*trialWalk) {},
	} {
		line, selected, _, err := tryLine("set walk --need n --other=o " + args)
		want := walk
		of(&want)
		if got, ok := selected.(*trialWalk); err != nil || !ok || !reflect.DeepEqual(*got, want) {
			t.Errorf("%s: %+v, %v, want %+v", args, selected, err, want)
		}
		if strings.Contains(args, "--common") != (line.Common == "c") {
			t.Errorf("%s: common is %q", args, line.Common)
		}
	}
	line, _, _, err := tryLine("--common c set walk north --need n --other o", "TRIAL_TOKEN=v")
	if err != nil || line.Common != "c" || line.Group.Walk.Token != "v" {
		t.Errorf("of the environment: %+v, %v", line, err)
	}
	for args, want := range map[string]int{"": 3, "--at-least 4": 4, "stand --at-least 4": 4, "--at-least 4 stand": 4} {
		if _, selected, _, err := tryLine(args); err != nil || !reflect.DeepEqual(selected, &trialStand{want}) {
			t.Errorf("%q: %+v, %v", args, selected, err)
		}
	}
}

// Each invalid argument is named, with a hint to the help.
func TestCommandLineFaults(t *testing.T) {
	for args, want := range map[string]string{
		"sing":           "unknown command \"sing\" for \"trial\"\nTry: trial --help",
		"help":           "unknown command \"help\" for \"trial\"\nTry: trial --help",
		"set":            "expected one of walk\nTry: trial set --help",
		"set sing":       "unknown command \"sing\", expected one of walk\nTry: trial set --help",
		"--loud":         "unknown flag: --loud\nTry: trial --help",
		"stand more":     "unexpected argument more\nTry: trial stand --help",
		"set walk":       "expected <where>\nTry: trial set walk --help",
		"set walk north": "missing flags: --need, --other\nTry: trial set walk --help",
		"set walk west":  "<where>: must be one of north, south\nTry: trial set walk --help",
		"stand --at-least x": "invalid argument \"x\" for \"--at-least\" flag: invalid syntax\n" +
			"Try: trial stand --help",
		"set walk north --kinds a,e": "invalid argument \"a,e\" for \"--kinds\" flag: must be one of a, b, c, d\n" +
			"Try: trial set walk --help",
	} {
		if _, selected, _, err := tryLine(args); err == nil || err.Error() != want || selected != nil {
			t.Errorf("%s: %v, want %s", args, err, want)
		}
	}
	_, _, _, err := tryLine("set walk north --need n --other o --dir /no/such")
	storetest.Fails(t, err, "/no/such")
	selected, err := parse(new(trialLine), "trial", "", nil, nil, io.Discard)
	if err != nil || !reflect.DeepEqual(selected, &trialStand{3}) {
		t.Errorf("the arguments of the process were read: %+v, %v", selected, err)
	}
}

// The help contains everything in the tags, and never a value from the environment.
func TestCommandLineHelp(t *testing.T) {
	_, selected, got, err := tryLine("set walk --help", "TRIAL_TOKEN=hunter2")
	want := `Usage: trial set walk --need TEXT --other TEXT <where> [<more> ...] [flags]

One below.

Longer words.

Arguments:
  <where>        A word. (north|south)
  [<more> ...]   More words.

Flags:
      --need TEXT        Needed.
      --other TEXT       Needed too.
      --kinds TEXT,...   Several. One of a, b, c, d.
      --empty x          One, or none.
      --limit N          Small.
      --grace DURATION   How long. (default 25h)
      --force            Yes.
      --token TEXT       Secret. ($TRIAL_TOKEN) (default none)
      --dir TEXT         Folder.
`
	if err != nil || selected != nil || !strings.HasPrefix(got, want) {
		t.Errorf("%v, %v:\n%s\nwant\n%s", selected, err, got, want)
	}
	_, _, got, err = tryLine("--help")
	for _, want := range []string{"Usage: trial <command> [flags]\n\nAbout it.\n", "      --common TEXT   Of all.\n",
		"      --at-least N    A number. (default 3)\n",
		"\nRun \"trial <command> --help\" for the help of a command.\n",
		"Commands:\n  stand [flags]\n    What happens without a command.\n  set walk --need TEXT --other TEXT <where>"} {
		if err != nil || !strings.Contains(got, want) {
			t.Errorf("%v: nothing of %q in\n%s", err, want, got)
		}
	}
}

// Every command, flag and argument of castellan has a line of help.
func TestEveryCommandIsExplained(t *testing.T) {
	commands := 0
	var walk func(*cobra.Command)
	walk = func(c *cobra.Command) {
		if commands++; c.HasParent() && c.Short == "" {
			t.Errorf("%s has no help", c.CommandPath())
		}
		c.LocalFlags().VisitAll(func(f *pflag.Flag) {
			if f.Usage == "" {
				t.Errorf("%s --%s has no help", c.CommandPath(), f.Name)
			}
		})
		for line := range strings.Lines(c.Annotations["arguments"]) {
			if _, text, _ := strings.Cut(line, ">"); strings.Trim(text, " .]\n") == "" {
				t.Errorf("%s: %q has no help", c.CommandPath(), line)
			}
		}
		for _, below := range c.Commands() {
			walk(below)
		}
	}
	root := (&commandLine{}).command(reflect.ValueOf(new(cli)).Elem(), "castellan", "")
	root.SetOut(io.Discard)
	walk(root)
	if commands < 40 {
		t.Errorf("%d commands were seen", commands)
	}
}

// An input that a command refuses is a failure, not an invalid command line, and opens nothing.
func TestRefusedInput(t *testing.T) {
	dir := t.TempDir()
	refused := map[string]string{"user import " + dir + "/none": dir, "user import " + dir: dir,
		"rates import " + dir + "/none": dir, "restore in-place --point 2999-01-01T00:00:00Z": "is in the future"}
	for _, args := range []string{"ledger verify", "audit verify", "jobs list", "user export", "restore in-place"} {
		refused[args] = "there is no database" // and none is made at a misspelled path
	}
	for args, want := range refused {
		code, out, errOut := command(t, []string{"DATA_DIR=" + dir + "/data"}, args)
		if _, err := os.Stat(dir + "/data"); code != 1 || !strings.Contains(errOut, want) || out != "" || err == nil {
			t.Errorf("%s: exit %d, %s%s, %v", args, code, out, errOut, err)
		}
	}
}
