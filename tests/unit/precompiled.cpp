// Nothing but what all tests here include: see CMakeLists.txt.
int main() {}
