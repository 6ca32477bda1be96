package config

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// raw is a value as written: one text (always, from the environment), a list, or pairs. A text may also be a list or a
// map in the notation of the environment.
type raw struct {
	form  form
	text  string
	list  []string
	pairs []pair
	lines bool // the text may have several lines
}

type form int

const (
	scalar form = iota
	sequence
	mapping
)

type pair struct{ key, value string }

// assign reads r into the variable that target points at, or returns an error with the expected format. The error may
// repeat the text: callers omit it for secrets.
func assign(target any, r raw) error {
	switch p := target.(type) {
	case *string:
		s, err := r.one()
		if err != nil {
			return err
		}
		*p = strings.TrimSpace(s)
	case *Secret:
		s, err := r.one()
		if err != nil {
			return err
		}
		*p = Secret(s)
	case *bool:
		return r.parse(func(s string) (err error) { *p, err = parseBool(s); return })
	case *int:
		return r.parse(func(s string) (err error) { *p, err = parseInt(s); return })
	case *float64:
		return r.parse(func(s string) (err error) { *p, err = parseFloat(s); return })
	case *time.Duration:
		return r.parse(func(s string) (err error) { *p, err = parseDuration(s); return })
	case *[]string:
		return assignList(p, r, func(s string) (string, error) { return s, nil })
	case *[]int:
		return assignList(p, r, parseInt)
	case *[]netip.Prefix:
		return assignList(p, r, parsePrefix)
	case *map[string]string:
		return assignMap(p, r, func(s string) (string, error) { return s, nil })
	case *Secrets:
		return assignMap(p, r, func(s string) (Secret, error) { return Secret(s), nil })
	case *map[string]int:
		return assignMap(p, r, parseInt)
	default:
		panic(fmt.Sprintf("config: no reader for %T", target))
	}
	return nil
}

func (r raw) one() (string, error) {
	if r.form != scalar {
		return "", errors.New("want one value, not a list or a map")
	}
	if r.lines {
		return r.text, checkText(strings.NewReplacer("\r", "", "\n", "", "\t", "").Replace(r.text))
	}
	return r.text, checkText(r.text)
}

func (r raw) parse(read func(string) error) error {
	s, err := r.one()
	if err != nil {
		return err
	}
	return read(strings.TrimSpace(s))
}

func assignList[T any](p *[]T, r raw, read func(string) (T, error)) error {
	items := r.list
	switch r.form {
	case mapping:
		return errors.New("want a list, not a map")
	case scalar:
		items = splitComma(r.text)
	}
	list := make([]T, 0, len(items))
	for _, item := range items {
		if err := checkText(item); err != nil {
			return err
		}
		v, err := read(strings.TrimSpace(item))
		if err != nil {
			return err
		}
		list = append(list, v)
	}
	*p = list
	return nil
}

// assignMap works on any map type, so that Secrets keeps its redaction.
func assignMap[M ~map[string]V, V any](p *M, r raw, read func(string) (V, error)) error {
	pairs := r.pairs
	switch r.form {
	case sequence:
		return errors.New("want a map, not a list")
	case scalar:
		for _, item := range splitComma(r.text) {
			k, v, ok := strings.Cut(item, "=")
			if !ok {
				return errors.New("want name=value pairs separated by commas")
			}
			pairs = append(pairs, pair{k, v})
		}
	}
	m := make(M, len(pairs))
	for _, kv := range pairs {
		k := strings.Join(strings.Fields(kv.key), " ")
		if err := errors.Join(checkText(kv.key), checkText(kv.value)); err != nil {
			return err
		}
		if k == "" {
			return errors.New("a name is empty")
		}
		if _, twice := m[k]; twice {
			return fmt.Errorf("%q is given twice", k)
		}
		v, err := read(strings.TrimSpace(kv.value))
		if err != nil {
			return err
		}
		m[k] = v
	}
	*p = m
	return nil
}

func splitComma(s string) []string {
	items := strings.Split(s, ",")
	for i := range items {
		items[i] = strings.TrimSpace(items[i])
	}
	return slices.DeleteFunc(items, func(s string) bool { return s == "" })
}

// checkText refuses text that would break a header, a log line or a path: invalid UTF-8 and control characters, often
// the line end of a secret file.
func checkText(s string) error {
	if !utf8.ValidString(s) {
		return errors.New("is not valid UTF-8")
	}
	if strings.ContainsFunc(s, unicode.IsControl) {
		return errors.New("contains a control character or line end")
	}
	return nil
}

func parseBool(s string) (bool, error) {
	switch strings.ToLower(s) {
	case "true", "1":
		return true, nil
	case "false", "0":
		return false, nil
	}
	return false, fmt.Errorf("%s is neither true nor false", quote(s))
}

func parseInt(s string) (int, error) {
	n, err := strconv.Atoi(s)
	if err != nil {
		return 0, fmt.Errorf("%s is not a whole number", quote(s))
	}
	return n, nil
}

func parseFloat(s string) (float64, error) {
	n, err := strconv.ParseFloat(s, 64)
	if err != nil || math.IsNaN(n) || math.IsInf(n, 0) {
		return 0, fmt.Errorf("%s is not a number", quote(s))
	}
	return n, nil
}

func parseDuration(s string) (time.Duration, error) {
	d, err := time.ParseDuration(s)
	if err != nil {
		return 0, fmt.Errorf("%s is not a duration such as 600s, 10m or 1h30m", quote(s))
	}
	if d%time.Millisecond != 0 {
		return 0, fmt.Errorf("%s is more precise than a millisecond", quote(s))
	}
	return d, nil
}

// parsePrefix reads a network or a single address. IPv4 mapped into IPv6 becomes IPv4, as in the comparison of client
// addresses.
func parsePrefix(s string) (netip.Prefix, error) {
	p, err := netip.ParsePrefix(s)
	if err != nil {
		a, err := netip.ParseAddr(s)
		if err != nil || a.Zone() != "" {
			return netip.Prefix{}, fmt.Errorf("%s is neither an IP address nor a network such as 10.0.0.0/8", quote(s))
		}
		p = netip.PrefixFrom(a, a.BitLen())
	}
	if p.Addr().Is4In6() {
		if p.Bits() < 96 {
			return netip.Prefix{}, fmt.Errorf("%s spans more than the IPv4 addresses", quote(s))
		}
		p = netip.PrefixFrom(p.Addr().Unmap(), p.Bits()-96)
	}
	return p.Masked(), nil
}

// quote repeats the written text, cut to a readable length.
func quote(s string) string {
	if r := []rune(s); len(r) > 60 {
		s = string(r[:60]) + "…"
	}
	return strconv.Quote(s)
}

// shortDuration is Duration.String without its trailing zero units: 10m, 1h.
func shortDuration(d time.Duration) string {
	s := d.String()
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	return s
}

// format writes the value that target points at as YAML of one line. Go's quoting is used for text: YAML's double
// quotes support all of its escapes. whole is false if a secret was omitted.
func format(target any) (text string, whole bool) {
	switch p := target.(type) {
	case *string:
		return strconv.Quote(*p), true
	case *Secret:
		if *p == "" {
			return `""`, false
		}
		return hidden, false
	case *bool:
		return strconv.FormatBool(*p), true
	case *int:
		return strconv.Itoa(*p), true
	case *float64:
		return strconv.FormatFloat(*p, 'g', -1, 64), true
	case *time.Duration:
		return shortDuration(*p), true
	case *[]string:
		return formatList(*p, strconv.Quote), true
	case *[]int:
		return formatList(*p, strconv.Itoa), true
	case *[]netip.Prefix:
		return formatList(*p, func(p netip.Prefix) string { return strconv.Quote(p.String()) }), true
	case *map[string]string:
		return formatMap(*p, strconv.Quote), true
	case *map[string]int:
		return formatMap(*p, strconv.Itoa), true
	case *Secrets:
		return formatMap(*p, func(Secret) string { return hidden }), false
	default:
		panic(fmt.Sprintf("config: no writer for %T", target))
	}
}

func formatList[T any](list []T, write func(T) string) string {
	items := make([]string, len(list))
	for i, v := range list {
		items[i] = write(v)
	}
	return "[" + strings.Join(items, ", ") + "]"
}

func formatMap[M ~map[string]V, V any](m M, write func(V) string) string {
	items := make([]string, 0, len(m))
	for _, k := range slices.Sorted(maps.Keys(m)) {
		items = append(items, strconv.Quote(k)+": "+write(m[k]))
	}
	return "{" + strings.Join(items, ", ") + "}"
}
