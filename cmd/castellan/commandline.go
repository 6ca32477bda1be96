package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"reflect"
	"strings"
	"unicode"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"castellan/cmd/app"
	"castellan/config"
)

// A command is a struct that runs, or has subcommands; its tags configure cobra. Every field is a flag, except for
// those tagged cmd or arg:
//
//	cmd:""                a subcommand
//	cmd:"creates"         … that an installation may begin with; others need its database
//	default:"withargs"    … which runs if no command is named
//	arg:"" optional:""    an argument after the command; a list takes all that follow
//	name:"…" short:"x"    instead of the field's name (CountryCode is country-code)
//	help:"…"              one line; a method Help adds a description to a command
//	placeholder:"…"       the name of the value in the help
//	default:"…" env:"…"   the value if none is given; the variable has priority
//	required:""           the flag must be given
//	enum:"a,b"            the permitted values; a trailing comma permits ""
//	type:"existingfile"   the path must exist; also existingdir
//
// Libraries that read such tags themselves find a command's methods by name. The linker then keeps every method of
// every type: the binary was twice as large.
type runner interface{ Run(*env) error }

// deploymentRunner is a command that begins with an open database.
type deploymentRunner interface {
	Run(*env, *app.Deployment) error
}

type opened struct {
	deploymentRunner
	open func(context.Context, config.Config) (*app.Deployment, error)
}

func (o opened) Run(e *env) error {
	v, err := o.open(e.ctx, e.cfg)
	if err != nil {
		return err
	}
	defer v.Close()
	return o.deploymentRunner.Run(e, v)
}

func init() { cobra.EnableCommandSorting = false } // in the order of the fields

// commandLine parses the arguments of the program.
type commandLine struct {
	environ  []string
	selected runner
}

// parse fills to, a pointer to a struct of commands, and returns the command to run. It returns nil when help was
// requested, after writing the help to out.
func parse(to any, name, description string, args, environ []string, out io.Writer) (runner, error) {
	l := commandLine{environ: environ}
	root := l.command(reflect.ValueOf(to).Elem(), name, "")
	root.Long = description
	root.CompletionOptions.DisableDefaultCmd = true
	root.SetHelpCommand(&cobra.Command{Use: "no-help", Hidden: true}) // --help is the only way
	root.SetArgs(append([]string{}, args...))                         // in place of nil cobra takes os.Args
	root.SetOut(out)
	root.SetErr(out)
	root.SetHelpFunc(func(c *cobra.Command, _ []string) { writeHelp(c) })
	root.SetUsageFunc(func(c *cobra.Command) error { writeHelp(c); return nil })
	c, err := root.ExecuteC()
	if err != nil {
		return nil, fmt.Errorf("%w\nTry: %s --help", err, c.CommandPath())
	}
	return l.selected, nil
}

// command declares a struct of commands, or a command that runs.
func (l *commandLine) command(v reflect.Value, name string, tag reflect.StructTag) *cobra.Command {
	c := &cobra.Command{Use: name, Short: tag.Get("help"), SilenceErrors: true, SilenceUsage: true}
	flags := c.Flags()
	of := v.Addr().Interface()
	r, runs := of.(runner)
	if d, ok := of.(deploymentRunner); ok {
		r, runs = opened{d, app.OpenExisting}, true
		if tag.Get("cmd") == "creates" {
			r = opened{d, app.Open}
		}
	}
	if !runs {
		flags = c.PersistentFlags() // subcommands accept them too
		c.RunE = expectCommand
	}
	flags.SortFlags, c.Flags().SortFlags = false, false
	if h, ok := of.(interface{ Help() string }); ok {
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

// fields declares the flags of a command and returns its arguments.
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
			below := l.command(v.Field(i), given.name, f.Tag)
			c.AddCommand(below)
			if given.has("default") {
				l.fields(c, c.Flags(), v.Field(i))
				c.RunE, c.Long = below.RunE, below.Long
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

// kebab returns the name of a flag: country-code for CountryCode.
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

// expectCommand runs if a subcommand is missing.
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

// takeWords sets the arguments of a command.
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

// needRequired reports all missing required flags together.
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

// helpColumns is the width of the help.
const helpColumns = 100

// writeHelp writes the description of a command, its flags and its subcommands.
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
		fmt.Fprintf(out, "\nRun \"%s <command> --help\" for the help of a command.\n", c.Root().Name())
	}
}

// listCommands lists the runnable commands below c, at any depth.
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
