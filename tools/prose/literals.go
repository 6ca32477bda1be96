package main

import (
	"go/ast"
	"go/token"
	"reflect"
	"regexp"
	"strconv"
	"strings"
	"unicode"
)

// minWords is the number of words that make a literal a text for people.
const minWords = 5

// lines is a text with the source line of each of its lines.
type lines struct {
	text []string
	at   []int
}

// literals reads the string literals of Go that are texts for people: help, log and error messages, and the tags help
// of flags. Literals joined by + are one text. The texts of endpoints are skipped: docs/openapi.json has them.
func literals(set *token.FileSet, file *ast.File) (all []paragraph) {
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.ImportSpec:
			return false
		case *ast.Field:
			if tag, ok := joined(set, n.Tag); ok {
				help := reflect.StructTag(tag.text[0]).Get("help")
				all = append(all, spoken(lines{[]string{help}, tag.at})...)
			}
			return n.Tag == nil
		case *ast.KeyValueExpr:
			if key, ok := n.Key.(*ast.Ident); ok && (key.Name == "Summary" || key.Name == "Description") {
				return false
			}
		case ast.Expr:
			if text, ok := joined(set, n); ok {
				all = append(all, spoken(text)...)
				return false
			}
		}
		return true
	})
	return all
}

// joined returns the text of a literal, or of literals joined by +.
func joined(set *token.FileSet, e ast.Expr) (lines, bool) {
	switch e := e.(type) {
	case *ast.BasicLit:
		if e == nil || e.Kind != token.STRING {
			return lines{}, false
		}
		value, err := strconv.Unquote(e.Value)
		l := lines{text: strings.Split(value, "\n")}
		for n := range l.text {
			at := set.Position(e.Pos()).Line
			if e.Value[0] == '`' {
				at += n
			}
			l.at = append(l.at, at)
		}
		return l, err == nil
	case *ast.ParenExpr:
		return joined(set, e.X)
	case *ast.BinaryExpr:
		left, ok := joined(set, e.X)
		right, also := joined(set, e.Y)
		if !ok || !also || e.Op != token.ADD {
			return lines{}, false
		}
		last := len(left.text) - 1
		left.text[last] += right.text[0]
		return lines{append(left.text, right.text[1:]...), append(left.at, right.at[1:]...)}, true
	}
	return lines{}, false
}

var (
	notProse = regexp.MustCompile(`^\s*[<{\[(]|</|` +
		`^\s*(?:ALTER|AND|CASE|CONFLICT|CREATE|DELETE|DROP|FROM|INSERT|LEFT|LOCK|ORDER|PRAGMA|SELECT|SET|UPDATE|WITH)\b`)
	plain = regexp.MustCompile(`^[("“]*\pL[\p{Ll}'’-]*[)"”.,;:!?]*$`)
	lower = regexp.MustCompile(`(?:^|\s)[\p{Ll}]+(?:\s|$)`)
)

// spoken returns the paragraphs that have at least minWords words and are mostly words. A list of names has no word in
// lower case.
func spoken(l lines) (all []paragraph) {
	if notProse.MatchString(l.text[0]) {
		return nil
	}
	for _, p := range paragraphs(l.text, 0, indented) {
		fields := strings.Fields(p.text)
		n := 0
		for _, f := range fields {
			if plain.MatchString(f) {
				n++
			}
		}
		if n >= minWords && 2*n >= len(fields) && lower.MatchString(p.text) {
			first := []rune(p.text) // an error message begins in lower case
			first[0] = unicode.ToUpper(first[0])
			all = append(all, paragraph{l.at[p.line], string(first)})
		}
	}
	return all
}
