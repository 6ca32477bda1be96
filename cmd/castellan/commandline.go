package main

import (
	"errors"
	"fmt"
	"io"
	"reflect"
	"slices"
	"strings"
	"unicode"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// A command is a struct that runs, or has commands below it; its tags say how
// cobra is to read it. Every field is a flag, but for those tagged cmd or arg:
//
//	cmd:""                a command below this one
//	default:"withargs"    … which is run where no command is named
//	arg:"" optional:""    a word after the command; a list takes all that follow
//	name:"…" short:"x"    instead of the field's name (CountryCode is country-code)
//	help:"…"              one line; a method Help says more about a command
//	placeholder:"…"       what stands for the value in the help
//	default:"…" env:"…"   the value where none is given; the variable comes first
//	required:""           the flag must be given
//	enum:"a,b"            nothing else is taken; a last comma allows ""
//	type:"existingfile"   the path must be there; also existingdir
//
// Libraries that read such tags themselves find a command's methods by name. The
// linker then keeps every method of every type: the binary was twice as large.
type runner interface{ Run(*env) error }

func init() { cobra.EnableCommandSorting = false } // in the order of the fields

// commandLine reads the words after the program's name.
type commandLine struct {
	environ  []string
	selected runner
}

// usageError is a command line that cannot be used.
type usageError struct {
	command string
	cause   error
}

func (e usageError) Error() string {
	return fmt.Sprintf("%v\nTry: %s --help", e.cause, e.command)
}

// parse fills to, a pointer to a struct of commands, and returns the one to run.
// It is nil when help was asked for, which is written to out then.
func parse(to any, name, description string, args, environ []string, out io.Writer) (runner, error) {
	l := commandLine{environ: environ}
	root := l.command(reflect.ValueOf(to).Elem(), name, "")
	root.Long = description
	root.CompletionOptions.DisableDefaultCmd = true
	root.SetHelpCommand(&cobra.Command{Use: "no-help", Hidden: true}) // --help is the one way
	root.SetArgs(slices.Concat([]string{}, args))
	root.SetOut(out)
	root.SetErr(out)
	root.SetHelpFunc(func(c *cobra.Command, _ []string) { writeHelp(c) })
	root.SetUsageFunc(func(c *cobra.Command) error { writeHelp(c); return nil })
	c, err := root.ExecuteC()
	if err != nil {
		return nil, usageError{c.CommandPath(), err}
	}
	return l.selected, nil
}

// command declares a struct of commands, or one that runs.
func (l *commandLine) command(v reflect.Value, name, short string) *cobra.Command {
	c := &cobra.Command{Use: name, Short: short, SilenceErrors: true, SilenceUsage: true}
	flags := c.Flags()
	r, runs := v.Addr().Interface().(runner)
	if !runs {
		flags = c.PersistentFlags() // the commands below take them too
		c.RunE = expectCommand
	}
	flags.SortFlags, c.Flags().SortFlags = false, false
	if h, ok := r.(interface{ Help() string }); ok {
		c.Long = h.Help()
	}
	words := l.fields(c, flags, v)
	if !runs {
		return c
	}
	flags.VisitAll(func(f *pflag.Flag) {
		if given, ok := f.Value.(*setting); ok && given.has("required") {
			c.Use += " --" + f.Name + strings.TrimSuffix(" "+given.placeholder(), " ")
		}
	})
	for _, w := range words {
		c.Use += " " + w.usage()
	}
	if len(words) > 0 {
		c.Annotations = map[string]string{"arguments": arguments(words)}
	}
	c.Args = func(_ *cobra.Command, args []string) error { return takeWords(words, args) }
	c.RunE = func(c *cobra.Command, _ []string) error {
		l.selected = r
		return needRequired(c)
	}
	return c
}

// fields declares what a command has and returns its words.
func (l *commandLine) fields(c *cobra.Command, flags *pflag.FlagSet, v reflect.Value) (words []*setting) {
	for i := range v.NumField() {
		f := v.Type().Field(i)
		if f.Anonymous {
			words = append(words, l.fields(c, flags, v.Field(i))...)
			continue
		}
		given := &setting{to: v.Field(i), tag: f.Tag, name: f.Tag.Get("name")}
		if given.name == "" {
			given.name = kebab(f.Name)
		}
		if given.has("cmd") {
			below := l.command(v.Field(i), given.name, f.Tag.Get("help"))
			c.AddCommand(below)
			if given.has("default") {
				l.fields(c, c.Flags(), v.Field(i))
				c.RunE = below.RunE
			}
			continue
		}
		given.preset(l.environ)
		if given.has("arg") {
			words = append(words, given)
			continue
		}
		flag := flags.VarPF(given, given.name, f.Tag.Get("short"), given.help())
		if given.to.Kind() == reflect.Bool {
			flag.NoOptDefVal = "true"
		}
		flag.DefValue = f.Tag.Get("default") // and not that of the environment
	}
	return words
}

// kebab is the name of a flag: country-code of CountryCode.
func kebab(field string) string {
	var b strings.Builder
	last := 'A'
	for _, r := range field {
		if unicode.IsUpper(r) && unicode.IsLower(last) {
			b.WriteByte('-')
		}
		b.WriteRune(unicode.ToLower(r))
		last = r
	}
	return b.String()
}

// expectCommand is run where a command was to follow.
func expectCommand(c *cobra.Command, args []string) error {
	var names []string
	for _, below := range c.Commands() {
		names = append(names, below.Name())
	}
	expected := "expected one of " + strings.Join(names, ", ")
	if len(args) > 0 {
		return fmt.Errorf("unknown command %q, %s", args[0], expected)
	}
	return errors.New(expected)
}

// takeWords gives a command its words.
func takeWords(words []*setting, args []string) error {
	for _, w := range words {
		if len(args) == 0 && !w.has("optional") {
			return fmt.Errorf("expected <%s>", w.name)
		}
		for len(args) > 0 {
			if err := w.add(args[0]); err != nil {
				return fmt.Errorf("<%s>: %w", w.name, err)
			}
			args = args[1:]
			if w.to.Kind() != reflect.Slice {
				break
			}
		}
	}
	if len(args) > 0 {
		return fmt.Errorf("unexpected argument %s", args[0])
	}
	return nil
}

// needRequired names all flags at once that must be given and were not.
func needRequired(c *cobra.Command) error {
	var missing []string
	c.Flags().VisitAll(func(f *pflag.Flag) {
		if v, ok := f.Value.(*setting); ok && v.has("required") && !f.Changed {
			missing = append(missing, "--"+f.Name)
		}
	})
	if len(missing) > 0 {
		return fmt.Errorf("missing flags: %s", strings.Join(missing, ", "))
	}
	return nil
}

// helpColumns is how wide the help is.
const helpColumns = 100

// writeHelp writes what a command is, what it takes and what is below it.
func writeHelp(c *cobra.Command) {
	out := c.OutOrStdout()
	usage := c.UseLine()
	if c.HasSubCommands() {
		usage = c.CommandPath() + " <command> [flags]"
	}
	fmt.Fprintf(out, "Usage: %s\n", usage)
	for _, text := range []string{c.Short, c.Long} {
		if text != "" {
			fmt.Fprintf(out, "\n%s\n", text)
		}
	}
	if text := c.Annotations["arguments"]; text != "" {
		fmt.Fprintf(out, "\nArguments:\n%s", text)
	}
	fmt.Fprintf(out, "\nFlags:\n%s", c.Flags().FlagUsagesWrapped(helpColumns))
	if c.HasSubCommands() {
		fmt.Fprint(out, "\nCommands:\n")
		listCommands(out, c, c.Root().Name()+" ")
		fmt.Fprintf(out, "\nRun \"%s <command> --help\" to read more about one.\n", c.Root().Name())
	}
}

// listCommands names the commands below c that run, at whatever depth.
func listCommands(out io.Writer, c *cobra.Command, above string) {
	for _, below := range c.Commands() {
		switch {
		case below.HasSubCommands():
			listCommands(out, below, above)
		case !below.Hidden:
			fmt.Fprintf(out, "  %s\n    %s\n", strings.TrimPrefix(below.UseLine(), above), below.Short)
		}
	}
}
