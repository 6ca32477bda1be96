package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/evanw/esbuild/pkg/api"
)

// reading is the result of console/src/kit/amount.ts for a text, and the text that it shows for each value.
type reading struct {
	Value  *string
	Values []string
	Fault  string
	Of     string
}

func (r reading) means() []string {
	if r.Value != nil {
		return []string{*r.Value}
	}
	return r.Values
}

type asked struct {
	Text   string         `json:"text"`
	Bounds map[string]any `json:"bounds,omitempty"`
}

const ask = `import { read, grouped } from './amount.js';
let input = '';
process.stdin.setEncoding('utf8');
for await (const part of process.stdin) input += part;
const { asked, shown } = JSON.parse(input);
process.stdout.write(JSON.stringify({
	read: asked.map(({ text, bounds }) => read(text, bounds)),
	shown: (shown ?? []).map(({ text, language }) => grouped(text, language).join('')),
}));`

type shown struct {
	Text     string `json:"text"`
	Language string `json:"language"`
}

// inNode reads texts and shows values as the console does.
func inNode(t *testing.T, texts []asked, values []shown) ([]reading, []string) {
	t.Helper()
	dir := t.TempDir()
	source, err := filepath.Abs("../../console/src/kit/amount.ts")
	if err != nil {
		t.Fatal(err)
	}
	built := api.Build(api.BuildOptions{EntryPoints: []string{source}, Outfile: filepath.Join(dir, "amount.js"),
		Format: api.FormatESModule, Target: api.ES2022, Write: true})
	if len(built.Errors) > 0 {
		t.Fatal(built.Errors[0].Text)
	}
	input, err := json.Marshal(map[string]any{"asked": texts, "shown": values})
	if err != nil {
		t.Fatal(err)
	}
	node := exec.Command("node", "--input-type=module", "-e", ask)
	node.Dir, node.Stdin, node.Stderr = dir, bytes.NewReader(input), new(bytes.Buffer)
	out, err := node.Output()
	if err != nil {
		t.Fatalf("%v: %s", err, node.Stderr)
	}
	var got struct {
		Read  []reading
		Shown []string
	}
	if err := json.Unmarshal(out, &got); err != nil {
		t.Fatal(err)
	}
	return got.Read, got.Shown
}

// scripts are the digits that a person types.
var scripts = []string{"0123456789", "٠١٢٣٤٥٦٧٨٩", "۰۱۲۳۴۵۶۷۸۹"}

// written returns the text of a number: whole digits, decimals, and the separators between.
func written(whole, fraction, group, decimal string) string {
	if group != "" {
		var b strings.Builder
		for i, digit := range whole {
			if i > 0 && (len(whole)-i)%3 == 0 {
				b.WriteString(group)
			}
			b.WriteRune(digit)
		}
		whole = b.String()
	}
	return whole + decimal + fraction
}

var (
	groupMarks   = []string{"", ".", ",", "٬", " ", "'"}
	decimalMarks = []string{".", ",", "٫"}
)

// model returns the values of a text of digits and separators: each number that some choice of separators writes as
// this text. It has no grammar. It writes every number that the digits can form, in every way.
func model(text string) (values []string) {
	digits := strings.Map(func(r rune) rune {
		if strings.ContainsRune(scripts[0], r) {
			return r
		}
		return -1
	}, text)
	if digits == "" {
		return nil
	}
	for split := range len(digits) + 1 {
		whole, fraction := digits[:split], digits[split:]
		for _, group := range groupMarks {
			if group != "" && (len(whole) < 4 || whole[0] == '0') {
				continue
			}
			marks := decimalMarks
			if fraction == "" {
				marks = append([]string{""}, decimalMarks...)
			}
			for _, decimal := range marks {
				if decimal != group || decimal == "" {
					if written(whole, fraction, group, decimal) == text {
						values = append(values, canonical(whole, fraction))
					}
				}
			}
		}
	}
	slices.Sort(values)
	return slices.Compact(values)
}

// canonical returns plain notation without superfluous zeros.
func canonical(whole, fraction string) string {
	if whole = strings.TrimLeft(whole, "0"); whole == "" {
		whole = "0"
	}
	if fraction = strings.TrimRight(fraction, "0"); fraction == "" {
		return whole
	}
	return whole + "." + fraction
}

// fits returns the values with at most that many decimals, and at most 18 whole digits.
func fits(values []string, decimals int) []string {
	return slices.DeleteFunc(slices.Clone(values), func(v string) bool {
		whole, fraction, _ := strings.Cut(v, ".")
		return len(whole) > 18 || len(fraction) > decimals
	})
}

// same reports the differences of a reading from the model.
func same(t *testing.T, q asked, got reading, all []string, decimals int) {
	t.Helper()
	want := fits(all, decimals)
	means := slices.Sorted(slices.Values(got.means()))
	if len(got.Values) > 1 && len(strings.Split(got.Values[0], ".")[0]) <= len(strings.Split(got.Values[1], ".")[0]) {
		t.Errorf("%q: the values %q do not begin with the larger one", q.Text, got.Values)
	}
	single := len(all) == 1 && len(want) == 1
	if !slices.Equal(means, want) || (got.Fault == "") != (len(want) > 0) || (got.Value != nil) != single {
		t.Errorf("%q %v: read as %q (%v, fault %q), the model has %q of %q", q.Text, q.Bounds, means, got.Value != nil,
			got.Fault, want, all)
	}
}

// Every text of at most five digits and separators is read as the model reads it. The result is one number, several
// that a person must choose from, or none.
func TestAmountReadsEveryShortText(t *testing.T) {
	alphabet := []string{"0", "1", ".", ",", " ", "'", "٫", "٬"}
	var queries []asked
	for last := []string{""}; len(last) < 1<<15; {
		var longer []string
		for _, text := range last {
			for _, sign := range alphabet {
				longer = append(longer, text+sign)
				queries = append(queries, asked{Text: text + sign})
			}
		}
		last = longer
	}
	got, _ := inNode(t, queries, nil)
	ambiguous := 0
	for i, q := range queries {
		text := strings.TrimSpace(q.Text)
		if text == "" {
			continue // a separate test
		}
		same(t, q, got[i], model(text), 18)
		if len(got[i].Values) > 1 {
			ambiguous++
		}
		if t.Failed() && i > 1000 {
			t.FailNow()
		}
	}
	if ambiguous == 0 {
		t.Error("no text is ambiguous: the model or the test is broken")
	}
}

// style is the number format of a language.
type style struct{ language, group, decimal string }

var styles = []style{
	{"en", ",", "."}, {"en", " ", "."}, {"en", "'", "."}, {"en", "", "."},
	{"tr", ".", ","}, {"tr", " ", ","}, {"tr", "'", ","}, {"tr", "", ","},
	{"ar", "٬", "٫"}, {"ar", ",", "."}, {"ar", " ", "٫"}, {"ar", "", "٫"},
}

// looksLike are other characters for a separator, as used by keyboards, spreadsheets and pages.
var looksLike = map[rune][]rune{' ': []rune(" \u00a0\u202f\u2009\u2007\t"), '\'': []rune("'’ʼ"), ',': []rune(",،")}

// A number in the format of a language is read as that number, or is one of several to choose from. That holds for each
// text on the way to it, typed character by character. It also holds for pasted text, with the currency, spaces and
// direction marks around it. No other number results, and that number is shown.
func TestAmountIsReadAsWritten(t *testing.T) {
	const seed = 22
	r := rand.New(rand.NewPCG(seed, seed))
	pick := func(all []string) string { return all[r.IntN(len(all))] }
	digits := func(most int) string {
		b := make([]byte, r.IntN(most+1))
		for i := range b {
			b[i] = scripts[0][r.IntN(10)]
		}
		return string(b)
	}
	var queries []asked
	var values []shown
	type expected struct {
		value    string // "": only the model is checked
		text     string // for the model
		decimals int
	}
	var want []expected
	for range 2000 {
		s := styles[r.IntN(len(styles))]
		value := canonical(digits(9), digits(9))
		whole, fraction, _ := strings.Cut(value, ".")
		group, decimal := s.group, s.decimal
		if len(whole) < 4 {
			group = ""
		}
		fraction += strings.Repeat("0", r.IntN(4))
		if fraction == "" {
			decimal = ""
		}
		text := written(whole, fraction, group, decimal)
		decimals := []int{18, 9, 8, 2, 0}[r.IntN(5)]
		bounds := map[string]any{"decimals": decimals, "unit": pick([]string{"BTC", "TRY", "1INCH"})}
		for n := range text { // typed
			if n > 0 {
				queries = append(queries, asked{dressed(r, text[:n], false), bounds})
				want = append(want, expected{"", text[:n], decimals})
			}
		}
		queries = append(queries, asked{dressed(r, text, false), bounds})
		pasted := dressed(r, text, true)
		switch r.IntN(3) {
		case 0:
			pasted += " " + bounds["unit"].(string)
		case 1:
			pasted = strings.ToLower(bounds["unit"].(string)) + "\u00a0" + pasted
		}
		queries = append(queries, asked{pasted, bounds})
		want = append(want, expected{value, text, decimals}, expected{value, text, decimals})
		values = append(values, shown{value, s.language})
	}
	for _, one := range values {
		queries = append(queries, asked{Text: one.Text})
		want = append(want, expected{one.Text, one.Text, 18})
	}
	got, looks := inNode(t, queries, values)
	for i, q := range queries {
		all := model(strings.TrimSpace(want[i].text))
		same(t, q, got[i], all, want[i].decimals)
		if v := want[i].value; v != "" && !slices.Contains(all, v) {
			t.Fatalf("seed %d: the model does not read %q as %s", seed, q.Text, v)
		}
		if t.Failed() && i > 100 {
			t.FailNow()
		}
	}
	for i, look := range looks {
		if plain := strings.ReplaceAll(look, "\u00a0", " "); !slices.Contains(model(plain), values[i].Text) {
			t.Errorf("%s is shown as %q", values[i].Text, look)
		}
	}
}

// dressed writes a text as keyboards and pages do: with other digits, other spaces, and direction marks around it.
func dressed(r *rand.Rand, text string, pasted bool) string {
	script := []rune(scripts[r.IntN(len(scripts))])
	text = strings.Map(func(c rune) rune {
		if n := strings.IndexRune(scripts[0], c); n >= 0 {
			return script[n]
		}
		if others := looksLike[c]; others != nil {
			return others[r.IntN(len(others))]
		}
		return c
	}, text)
	if pasted {
		text = "\u2066\u200f " + text + "\u00a0\u2069"
	}
	return text
}

// A text that is no number reports its fault, and nothing is guessed.
func TestAmountFaults(t *testing.T) {
	cases := []struct {
		text, bounds, fault, of string
	}{
		{"1e5", "{}", "character", "e"}, {"12a", "{}", "character", "a"}, {"€5", "{}", "character", "€"},
		{"5 BTC", `{"unit":"TRY"}`, "character", "B"}, {"1_000", "{}", "character", "_"},
		{"11INCH", `{"unit":"1INCH"}`, "character", "I"},
		{"-5", "{}", "sign", ""}, {"+5", "{}", "sign", ""}, {"−5", "{}", "sign", ""}, {"5-", "{}", "sign", ""},
		{"1,000,5", "{}", "grouping", ""}, {"1.2.3", "{}", "grouping", ""}, {"1  000", "{}", "grouping", ""},
		{".", "{}", "grouping", ""}, {"BTC", `{"unit":"BTC"}`, "grouping", ""}, {"-", `{"signed":true}`, "grouping", ""},
		{"0.123", `{"decimals":2}`, "decimals", ""}, {"1.5", `{"decimals":0}`, "decimals", ""},
		{"0.1234567890123456789", "{}", "decimals", ""}, {"1234567890123456789", "{}", "range", ""},
		{"1234567890123456", `{"digits":15}`, "range", ""},
		{"", "{}", "", ""}, {" \u200f", "{}", "", ""}, {"-5", `{"signed":true}`, "", ""},
	}
	queries := make([]asked, len(cases))
	for i, c := range cases {
		queries[i].Text = c.text
		if err := json.Unmarshal([]byte(c.bounds), &queries[i].Bounds); err != nil {
			t.Fatal(err)
		}
	}
	got, _ := inNode(t, queries, nil)
	for i, c := range cases {
		if got[i].Fault != c.fault || got[i].Of != c.of {
			t.Errorf("%q %s has the fault %q of %q, want %q of %q", c.text, c.bounds, got[i].Fault, got[i].Of, c.fault, c.of)
		}
	}
	if fmt.Sprint(got[len(got)-1].means()) != "[-5]" {
		t.Errorf("-5 is read as %v", got[len(got)-1].means())
	}
}
