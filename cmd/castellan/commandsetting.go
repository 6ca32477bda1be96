package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"
)

// setting is a field of a command, set by a flag or an argument.
type setting struct {
	to    reflect.Value
	tag   reflect.StructTag
	name  string
	given bool // explicitly, not by default
}

func (v *setting) has(key string) bool {
	_, ok := v.tag.Lookup(key)
	return ok
}

// preset sets the field to its default value.
func (v *setting) preset(environ []string) {
	text, ok := v.tag.Lookup("default")
	if name := v.tag.Get("env"); name != "" {
		for _, pair := range environ {
			if of, is, _ := strings.Cut(pair, "="); of == name {
				text, ok = is, true
			}
		}
	}
	if !ok {
		return
	}
	if err := v.Set(text); err != nil {
		panic(fmt.Sprintf("%s has no default %q: %v", v.name, text, err))
	}
	v.given = false
}

// Set parses the value of a flag. A list accepts several, separated by commas.
func (v *setting) Set(text string) error {
	if v.to.Kind() != reflect.Slice {
		return v.add(text)
	}
	for one := range strings.SplitSeq(text, ",") {
		if err := v.add(one); err != nil {
			return err
		}
	}
	return nil
}

// add adds one value: the only one, or one more of a list.
func (v *setting) add(text string) error {
	if enum := v.tag.Get("enum"); enum != "" {
		if !slices.Contains(strings.Split(enum, ","), text) {
			return fmt.Errorf("must be one of %s", strings.Join(v.choices(), ", "))
		}
	}
	if kind := v.tag.Get("type"); kind != "" {
		var err error
		if text, err = existingPath(text, kind == "existingdir"); err != nil {
			return err
		}
	}
	if !v.given {
		v.to.SetZero()
		v.given = true
	}
	if v.to.Kind() != reflect.Slice {
		return setField(v.to, text)
	}
	one := reflect.New(v.to.Type().Elem()).Elem()
	if err := setField(one, text); err != nil {
		return err
	}
	v.to.Set(reflect.Append(v.to, one))
	return nil
}

// setField parses text into the type of a field.
func setField(to reflect.Value, text string) (err error) {
	switch {
	case to.Kind() == reflect.Pointer:
		to.Set(reflect.New(to.Type().Elem()))
		return setField(to.Elem(), text)
	case to.Type() == reflect.TypeFor[time.Duration]():
		var d time.Duration
		d, err = time.ParseDuration(text)
		to.SetInt(int64(d))
	case to.Kind() == reflect.String:
		to.SetString(text)
	case to.Kind() == reflect.Bool:
		var b bool
		b, err = strconv.ParseBool(text)
		to.SetBool(b)
	case to.CanInt():
		var n int64
		n, err = strconv.ParseInt(text, 10, to.Type().Bits())
		to.SetInt(n)
	case to.CanUint():
		var n uint64
		n, err = strconv.ParseUint(text, 10, to.Type().Bits())
		to.SetUint(n)
	default:
		panic(fmt.Sprintf("no flag can be of type %s", to.Type()))
	}
	if bad, ok := errors.AsType[*strconv.NumError](err); ok {
		err = bad.Err // without the name of a function
	}
	return err
}

// existingPath returns the absolute path of an existing file or folder.
func existingPath(path string, dir bool) (string, error) {
	if rest, ok := strings.CutPrefix(path, "~/"); ok {
		home, err := os.UserHomeDir()
		if err != nil {
			return "", err
		}
		path = filepath.Join(home, rest)
	}
	path, err := filepath.Abs(path)
	if err != nil {
		return "", err
	}
	switch st, err := os.Stat(path); {
	case err != nil:
		return "", err
	case dir && !st.IsDir():
		return "", fmt.Errorf("%s is not a folder", path)
	case !dir && st.IsDir():
		return "", fmt.Errorf("%s is a folder", path)
	}
	return path, nil
}

// String returns the current value; cobra reads --help with it.
func (v *setting) String() string {
	if !v.to.IsValid() { // pflag compares defaults with the zero value
		return ""
	}
	return fmt.Sprint(v.to.Interface())
}

// Type returns the name of the value in the help; pflag omits that of a bool.
func (v *setting) Type() string {
	if v.to.Kind() == reflect.Bool {
		return "bool"
	}
	return v.placeholder()
}

func (v *setting) placeholder() string {
	kind, list := v.to.Type(), ""
	if kind.Kind() == reflect.Slice {
		kind, list = kind.Elem(), ",..."
	}
	if kind.Kind() == reflect.Pointer {
		kind = kind.Elem()
	}
	switch {
	case v.tag.Get("placeholder") != "":
		return v.tag.Get("placeholder")
	case v.short():
		return strings.Join(v.choices(), "|") + list
	case kind.Kind() == reflect.Bool:
		return ""
	case kind == reflect.TypeFor[time.Duration]():
		return "DURATION" + list
	case kind.Kind() == reflect.String:
		return "TEXT" + list
	}
	return "N" + list
}

// choices are the values of an enum that the help shows.
func (v *setting) choices() []string {
	return slices.DeleteFunc(strings.Split(v.tag.Get("enum"), ","), func(s string) bool { return s == "" })
}

// short reports whether the choices of an enum fit in place of the value's name.
func (v *setting) short() bool { return v.has("enum") && len(v.choices()) <= 3 }

// help describes a flag, without its default.
func (v *setting) help() string {
	text := v.tag.Get("help")
	if v.has("enum") && !v.short() {
		text += " One of " + strings.Join(v.choices(), ", ") + "."
	}
	if name := v.tag.Get("env"); name != "" {
		text += " ($" + name + ")"
	}
	return text
}

// usage returns an argument in the form of the usage line.
func (v *setting) usage() string {
	text := "<" + v.name + ">"
	if v.to.Kind() == reflect.Slice {
		text += " ..."
	}
	if v.has("optional") {
		text = "[" + text + "]"
	}
	return text
}

// arguments describes the arguments of a command.
func arguments(words []*setting) string {
	var b strings.Builder
	table := tabwriter.NewWriter(&b, 0, 0, 3, ' ', 0)
	for _, w := range words {
		fmt.Fprintf(table, "  %s\t%s", w.usage(), w.tag.Get("help"))
		if w.tag.Get("enum") != "" {
			fmt.Fprintf(table, " (%s)", strings.Join(w.choices(), "|"))
		}
		if text := w.tag.Get("default"); text != "" {
			fmt.Fprintf(table, " (default %s)", text)
		}
		fmt.Fprintln(table)
	}
	table.Flush()
	return b.String()
}
