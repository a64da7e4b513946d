//go:build !race

package controller

const raced = false
