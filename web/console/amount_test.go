//go:build !noconsole

package console_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"castellan/domain/kit/storetest"
)

// Every amount in the interface uses the one field for amounts (console/src/kit/amountinput.tsx), and no screen has a
// number input of its own or changes what a user types.
func TestAmountFields(t *testing.T) {
	names := amountsOfRequests(t)
	fields := map[string]int{}
	for _, script := range scripts(t) {
		if filepath.Base(script) == "amountinput.tsx" {
			continue
		}
		text := storetest.Value(os.ReadFile(script))(t)
		found, wrong := amountFields(string(text), names)
		for _, name := range found {
			fields[name]++
		}
		for _, what := range wrong {
			t.Errorf("%s: %s", script, what)
		}
	}
	for _, name := range names {
		if fields[name] == 0 {
			t.Errorf("no screen has a field for the amount %q: the search is broken, or the interface changed", name)
		}
	}
}

// The search finds each way to write an amount field, right and wrong.
func TestAmountFieldsAreFound(t *testing.T) {
	names := []string{"amount", "threshold"}
	for text, want := range map[string]string{
		`{ name: 'amount', title: 'money.amount', kind: 'money', required: true }`:               "",
		`{ name: 'amount', title: 'x', bounds: () => { return { unit: 'BTC' } }, kind: 'money'}`: "",
		`[ ['threshold', 'currency.threshold', 'money'] ]`:                                       "",
		`<AmountInput {...field('amount')} onChange={(v) => set({ amount: v })} />`:              "",
		`<AmountInput name="threshold" value={values.threshold} />`:                              "",
		`{ key: 'amount', title: 'money.amount', show: amount }`:                                 "",
		`<PinInput length={6} type="number" />`:                                                  "",
		`{ name: 'amount', title: 'money.amount', required: true }`:                              "kind money",
		`{ name: 'amount', kind: 'number', title: 'x' }, { name: 'b', kind: 'money' }`:           "kind money",
		`['threshold', 'currency.threshold', 'number'], ['b', 'c', 'money']`:                     "kind money",
		`<TextInput {...field('amount')} onChange={(e) => set(e)} />`:                            "a TextInput",
		`<AmountInput /><TextInput name="amount" />`:                                             "a TextInput",
		`<NumberInput label="x" />`:                                                              "NumberInput",
		`<TextInput value={search.amount ?? ''} />`:                                              "a TextInput",
		`<TextInput label="x" inputMode="decimal" />`:                                            "inputMode",
		`<TextInput onChange={(e) => f(e)} type="number" />`:                                     `type="number"`,
		`onChange={(e) => set(e.currentTarget.value.replaceAll(/[^\d.]/g, ''))}`:                 "typed",
		`onChange={({ target }) => set(target.value.replace(',', '.'))}`:                         "typed",
	} {
		_, wrong := amountFields(text, names)
		if (want == "") != (len(wrong) == 0) || !strings.Contains(strings.Join(wrong, "; "), want) {
			t.Errorf("%s: found %q, want %q", text, wrong, want)
		}
	}
}

var (
	ownNumbers = regexp.MustCompile(`\bNumberInput\b|inputMode="decimal"|type="number"`)
	changed    = regexp.MustCompile(`[tT]arget\.value\s*\.replace`)
	element    = regexp.MustCompile(`<([A-Z]\w*)`)
)

// amountFields returns the fields for amounts in a script, by name, and the errors of its number inputs.
func amountFields(text string, names []string) (found, wrong []string) {
	// tag is the element that contains an attribute's position.
	tag := func(at int) string {
		all := element.FindAllStringSubmatch(text[:at], -1)
		if len(all) == 0 {
			return "text"
		}
		return all[len(all)-1][1]
	}
	for _, at := range ownNumbers.FindAllStringIndex(text, -1) {
		if what := text[at[0]:at[1]]; what != `type="number"` || tag(at[0]) != "PinInput" {
			wrong = append(wrong, what+" is for AmountInput alone")
		}
	}
	if changed.MatchString(text) {
		wrong = append(wrong, "a field changes what is typed")
	}
	among := strings.Join(names, "|")
	table := regexp.MustCompile(`(\{\s*|,\s*)name: '(` + among + `)'|(\[)'(` + among + `)', '`)
	for _, at := range table.FindAllStringSubmatchIndex(text, -1) {
		literal, name := text[at[0]:enclosing(text, at[0])], ""
		if at[4] >= 0 {
			name = text[at[4]:at[5]]
		} else {
			name = text[at[8]:at[9]]
		}
		if !strings.Contains(literal, "'money'") {
			wrong = append(wrong, fmt.Sprintf("%q is an amount without the kind money", name))
		}
		found = append(found, name)
	}
	attribute := regexp.MustCompile(`\bfield\('(` + among + `)'\)|\bname=\{?["'](` + among + `)["']` +
		`|\bvalue=\{[\w.?!]*\.(` + among + `)\b`)
	for _, at := range attribute.FindAllStringSubmatchIndex(text, -1) {
		if of := tag(at[0]); of != "AmountInput" {
			wrong = append(wrong, fmt.Sprintf("%q is an amount in a %s", text[at[0]:at[1]], of))
		}
		for _, group := range []int{2, 4, 6} {
			if at[group] >= 0 {
				found = append(found, text[at[group]:at[group+1]])
			}
		}
	}
	return found, wrong
}

// enclosing returns the end of the literal around a position in a script.
func enclosing(text string, at int) int {
	depth := 0
	if strings.ContainsRune("{[", rune(text[at])) {
		depth--
	}
	for i := at; i < len(text); i++ {
		switch text[i] {
		case '{', '[', '(':
			depth++
		case '}', ']', ')':
			if depth--; depth < 0 {
				return i
			}
		}
	}
	return len(text)
}

// amountsOfRequests returns the names of all fields of bodies and queries that the interface describes as Amount.
func amountsOfRequests(t *testing.T) []string {
	t.Helper()
	var api struct {
		Paths      map[string]map[string]any
		Components struct{ Schemas map[string]any }
	}
	text, err := os.ReadFile("../../docs/openapi.json")
	if err == nil {
		err = json.Unmarshal(text, &api)
	}
	storetest.Must(t, err)
	const schemas = "#/components/schemas/"
	names := map[string]bool{}
	seen := map[string]bool{}
	var walk func(name string, schema any)
	walk = func(name string, schema any) {
		switch of := schema.(type) {
		case []any:
			for _, one := range of {
				walk(name, one)
			}
		case map[string]any:
			if ref, _ := of["$ref"].(string); strings.HasPrefix(ref, schemas) {
				if ref == schemas+"Amount" {
					names[name] = true
				} else if !seen[ref] {
					seen[ref] = true
					walk(name, api.Components.Schemas[strings.TrimPrefix(ref, schemas)])
				}
			}
			if query, _ := of["in"].(string); query == "query" {
				name, _ = of["name"].(string)
			}
			properties, _ := of["properties"].(map[string]any)
			for property, schema := range properties {
				walk(property, schema)
			}
			for _, key := range []string{"schema", "items", "oneOf", "anyOf", "allOf", "content", "application/json"} {
				walk(name, of[key])
			}
		}
	}
	for _, methods := range api.Paths {
		for _, operation := range methods {
			if of, is := operation.(map[string]any); is {
				walk("", of["requestBody"])
				walk("", of["parameters"])
			}
		}
	}
	all := slices.Sorted(maps.Keys(names))
	if len(all) < 4 {
		t.Fatalf("the interface takes the amounts %q: the search is broken", all)
	}
	return all
}
