// A statically linked program: the dynamic loader never sees it, so nothing can be preloaded into
// it.
int main(void) { return 0; }
